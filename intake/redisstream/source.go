package redisstream

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/wait"
)

// source is a stream, read by a consumer of a group.
type source struct {
	cfg    config
	opts   *intake.Options
	client rueidis.Client  // nil: none
	held   map[string]bool // ids of entries taken and not acked

	mu      sync.Mutex
	settled []entry // not acked yet
}

// entry is an entry that is settled.
type entry struct {
	id      string
	fields  []rueidis.XRangeFieldValue
	refused error // why it is to be set aside; nil: it is to be acked
}

const (
	readMany = 256                    // entries of a read
	readWait = 500 * time.Millisecond // how long a read waits for an entry, and so an ack at most

	mostRefused = 1000 // entries that cannot be set aside; with more, none are read

	refusedSuffix = ".refused" // of the stream for what can never be pushed
)

// connect makes the client, and stream and group if it may. It fails if they are missing.
func (s *source) connect() (err error) {
	if s.client == nil {
		if s.client, err = rueidis.NewClient(s.cfg.client); err != nil {
			s.client = nil
			return err
		}
	}
	if !s.cfg.declare {
		return s.do("XPENDING", nil, s.cfg.group).Error()
	}
	err = s.do("XGROUP", []string{"CREATE"}, s.cfg.group, "0", "MKSTREAM").Error()
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsBusyGroup() {
		return nil // it is there
	}
	return err
}

// hangUp closes the client. After a failover its address may lead elsewhere.
func (s *source) hangUp() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// do runs a command on the stream.
func (s *source) do(verb string, before []string, after ...string) rueidis.RedisResult {
	return s.run(s.client.B().Arbitrary(verb).Args(before...).Keys(s.cfg.stream).Args(after...).Build())
}

// run runs a command to its end, for at most the timeout: the entries of a read that is given
// up would be the consumer's all the same.
func (s *source) run(cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout+readWait)
	defer cancel()
	return s.client.Do(ctx, cmd)
}

// Test makes what it may, and says what it found.
func (s *source) Test(context.Context) (found string, err error) {
	defer s.hangUp()
	if err := s.connect(); err != nil {
		return "", s.trouble(err)
	}
	entries, err := s.do("XLEN", nil).AsInt64()
	if err != nil {
		return "", s.trouble(err)
	}
	return fmt.Sprintf("the stream %q has %d entries and the group %q", s.cfg.stream, entries, s.cfg.group), nil
}

// Receive hands over entries until ctx ends or Redis fails: first those that the consumer took
// before and has not acked, then new ones, and now and then those that others have left.
func (s *source) Receive(ctx context.Context, to intake.Sink) error {
	err := s.receive(ctx, to)
	if err == nil {
		return nil
	}
	s.hangUp()
	return s.trouble(err)
}

func (s *source) receive(ctx context.Context, to intake.Sink) error {
	if err := s.connect(); err != nil {
		return err
	}
	s.mu.Lock()
	s.settled = nil // what was not acked comes again
	s.mu.Unlock()
	s.held = make(map[string]bool)
	to.Report(nil)
	from, claimed := "0", time.Time{}
	for stuck := false; ctx.Err() == nil; {
		trouble, err := s.finish()
		if err != nil {
			return err
		}
		if (trouble != nil) != stuck {
			stuck = !stuck
			to.Report(trouble)
		}
		if stuck && s.waiting() >= mostRefused {
			wait.Sleep(ctx, readWait)
			continue
		}
		if time.Since(claimed) >= s.cfg.idle/2 {
			if err := s.claim(ctx, to); err != nil {
				return err
			}
			claimed = time.Now()
		}
		cmd := s.client.B().Xreadgroup().Group(s.cfg.group, s.cfg.consumer).Count(readMany).Block(readWait.Milliseconds()).Streams().Key(s.cfg.stream).Id(from)
		all, err := s.run(cmd.Build()).AsXReadSlices()
		if err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
		last := s.take(to, all[s.cfg.stream], from != ">")
		if from != ">" {
			if from = last; last == "" {
				from = ">"
			}
		}
	}
	return nil
}

// claim takes over the entries that consumers have left.
func (s *source) claim(ctx context.Context, to intake.Sink) error {
	for from := "0-0"; ctx.Err() == nil; {
		answer, err := s.do("XAUTOCLAIM", nil, s.cfg.group, s.cfg.consumer, strconv.FormatInt(s.cfg.idle.Milliseconds(), 10), from, "COUNT", strconv.Itoa(readMany)).ToArray()
		if err != nil {
			return err
		}
		all, err := answer[1].AsXRangeSlices()
		if err != nil {
			return err
		}
		s.take(to, all, true)
		if from, err = answer[0].ToString(); err != nil || from == "0-0" {
			return err
		}
	}
	return nil
}

// take hands over entries, and returns the id of the last.
func (s *source) take(to intake.Sink, all []rueidis.XRangeSlice, again bool) (last string) {
	for _, e := range all {
		last = e.ID
		if s.held[e.ID] { // it was idle for long
			continue
		}
		s.held[e.ID] = true
		if e.FieldValues == nil { // it was deleted
			s.settle(entry{id: e.ID})
			continue
		}
		m := &intake.Message{SenderID: e.ID, Redelivered: again}
		m.Settle = func(refused error) { s.settle(entry{e.ID, e.FieldValues, refused}) }
		for _, f := range e.FieldValues {
			if f.Field == "body" {
				m.Draft.Body = []byte(f.Value)
			} else {
				m.Field(f.Field, f.Value)
			}
		}
		to.Take(m)
	}
	return last
}

func (s *source) settle(all ...entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled = append(s.settled, all...)
}

// waiting returns how many settled entries are not acked.
func (s *source) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.settled)
}

// finish sets aside what is refused, and acks what is settled. trouble is why the first
// refused entry cannot be set aside: then they wait.
func (s *source) finish() (trouble, err error) {
	s.mu.Lock()
	all := s.settled
	s.settled = nil
	s.mu.Unlock()
	var left []entry
	var ids []string
	for _, e := range all {
		if e.refused != nil && trouble == nil {
			trouble = s.setAside(e)
		}
		if e.refused != nil && trouble != nil {
			left = append(left, e)
		} else {
			ids = append(ids, e.id)
			delete(s.held, e.id)
		}
	}
	s.settle(left...)
	if len(ids) > 0 { // those that are not acked come again
		err = s.do("XACK", nil, append([]string{s.cfg.group}, ids...)...).Error()
		if err == nil && s.cfg.remove {
			err = s.do("XDEL", nil, ids...).Error()
		}
	}
	return trouble, err
}

// setAside adds an entry to the stream for refused ones, with the reason.
func (s *source) setAside(e entry) error {
	args := []string{"*"}
	for _, f := range e.fields {
		args = append(args, f.Field, f.Value)
	}
	to := s.cfg.stream + refusedSuffix
	err := s.run(s.client.B().Arbitrary("XADD").Keys(to).Args(append(args, "refused", intake.Reason(e.refused))...).Build()).Error()
	if err == nil {
		return nil
	}
	return &intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused entries wait for the stream " + to + "; let the user add to it"}
}

// Close acks what was settled, and closes the connection.
func (s *source) Close() error {
	if s.client != nil {
		_, _ = s.finish() // else they come again
	}
	s.hangUp()
	return nil
}
