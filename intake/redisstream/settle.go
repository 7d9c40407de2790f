package redisstream

import (
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/calls"
)

const refusedSuffix = ".refused" // of the stream for what can never be pushed

// entry is an entry that is settled.
type entry struct {
	id      string
	fields  []rueidis.XRangeFieldValue
	refused error // why it is to be set aside; nil: it is to be acked
}

// settle has an entry acked.
func (s *source) settle(e entry) {
	s.mu.Lock()
	s.settled = append(s.settled, e)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// settleAll acks entries until Close, and then once more.
func (s *source) settleAll() {
	for pause := (calls.Pause{Least: 100 * time.Millisecond, Most: 10 * time.Second}); ; pause.Reset() {
		select {
		case <-s.news:
		case <-s.ctx.Done():
			_ = s.finish() // else they come again
			return
		}
		for s.finish() != nil && pause.Wait(s.ctx) {
		}
	}
}

// finish sets aside what is refused, and acks what is settled, many at a time.
func (s *source) finish() error {
	s.mu.Lock()
	all := s.settled
	s.settled = nil
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	c, err := s.connect()
	if err != nil {
		s.keep(all)
		return err
	}
	var stuck, done []entry
	var ids []string
	for _, e := range all {
		if e.refused != nil {
			if failed := s.setAside(c, e); failed != nil {
				err, stuck = failed, append(stuck, e)
				continue
			}
		}
		done, ids = append(done, entry{id: e.id}), append(ids, e.id)
	}
	s.stuck(err)
	if failed := s.ack(c, ids); failed != nil {
		err, stuck = failed, append(stuck, done...)
	}
	s.keep(stuck)
	return err
}

// keep keeps entries for the next attempt.
func (s *source) keep(left []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(left, s.settled...)
}

func (s *source) ack(c rueidis.Client, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := s.do(c, "XACK", nil, append([]string{s.cfg.group}, ids...)...).Error()
	if err == nil && s.cfg.remove {
		err = s.do(c, "XDEL", nil, ids...).Error()
	}
	return err
}

// setAside adds an entry to the stream for refused ones, with the reason.
func (s *source) setAside(c rueidis.Client, e entry) error {
	args := []string{"*"}
	for _, f := range e.fields {
		args = append(args, f.Field, f.Value)
	}
	cmd := c.B().Arbitrary("XADD").Keys(s.cfg.stream + refusedSuffix).Args(append(args, "refused", engine.Clip(e.refused.Error()))...)
	return s.run(c, cmd.Build()).Error()
}

// stuck reports whether entries can be set aside.
func (s *source) stuck(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil || (err == nil) == (s.stuckWith == nil) {
		return
	}
	if s.stuckWith = err; err == nil {
		s.to.Report(nil)
		return
	}
	s.to.Report(&intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused entries wait for the stream " + s.cfg.stream + refusedSuffix + "; let the user add to it"})
}

// troubles are the codes and hints of errors of Redis, by prefix.
var troubles = []struct{ prefix, code, hint string }{
	{"NOGROUP", "no_group", "make the stream and its group, by XGROUP CREATE STREAM GROUP 0 MKSTREAM, or let the intake with declare=true"},
	{"WRONGTYPE", "mismatch", "the key is no stream; choose another"},
	{"NOAUTH", intake.CodeCredentials, "this Redis requires a password; set one in the URL or by password_file"},
	{"WRONGPASS", intake.CodeCredentials, "check the user and the password of the source's URL"},
	{"ERR AUTH", intake.CodeCredentials, "this Redis has no password; leave it out of the URL"},
	{"NOPERM", intake.CodeForbidden, "the user needs the key of the stream, and +xreadgroup +xack +xautoclaim +xgroup +xpending +xlen +xadd +xdel"},
	{"READONLY", intake.CodeFailed, "this Redis is a read-only replica; use the master's address"},
	{"MOVED", intake.CodeFailed, "this Redis is a node of a cluster, and another node has the stream; use that node"},
}

// trouble converts an error of Redis.
func (s *source) trouble(err error) error {
	e, answered := rueidis.IsRedisErr(err)
	if !answered {
		return &intake.Trouble{Code: intake.CodeUnreachable, Err: err, Hint: "check that Redis runs at " + strings.Join(s.cfg.client.InitAddress, ", ") + "; the intake connects again by itself"}
	}
	for _, t := range troubles {
		if strings.HasPrefix(e.Error(), t.prefix) {
			return &intake.Trouble{Code: t.code, Err: err, Hint: t.hint}
		}
	}
	return &intake.Trouble{Code: intake.CodeFailed, Err: err, Hint: "Redis returned this error"}
}
