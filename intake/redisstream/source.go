package redisstream

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
)

// source is a stream, read by a consumer of a group.
type source struct {
	cfg  config
	opts *intake.Options

	dial   sync.Mutex
	client rueidis.Client // nil: none

	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	acking sync.WaitGroup
	acks   sync.Once
	news   chan struct{} // something was settled

	mu        sync.Mutex
	settled   []entry     // not acked yet
	to        intake.Sink // nil: nothing is received
	stuckWith error       // why refused entries cannot be set aside
}

const (
	readMany = 256                    // entries of a read
	readWait = 500 * time.Millisecond // how long a read waits for an entry
)

// connect returns the client, and makes it if there is none.
func (s *source) connect() (rueidis.Client, error) {
	s.dial.Lock()
	defer s.dial.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	c, err := rueidis.NewClient(s.cfg.client)
	if err != nil {
		return nil, err
	}
	s.client = c
	return c, nil
}

// hangUp closes the client. After a failover its address may lead elsewhere.
func (s *source) hangUp() {
	s.dial.Lock()
	defer s.dial.Unlock()
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// do runs a command on the stream.
func (s *source) do(c rueidis.Client, verb string, before []string, after ...string) rueidis.RedisResult {
	return s.run(c, c.B().Arbitrary(verb).Args(before...).Keys(s.cfg.stream).Args(after...).Build())
}

// run runs a command to its end, for at most the timeout: the entries of a read that is given
// up would be the consumer's all the same.
func (s *source) run(c rueidis.Client, cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout+readWait)
	defer cancel()
	return c.Do(ctx, cmd)
}

// Test makes what it may, and says what it found.
func (s *source) Test(context.Context) (found string, err error) {
	defer s.hangUp()
	c, err := s.connect()
	if err == nil {
		err = s.look(c)
	}
	var entries, pending int64
	if err == nil {
		entries, err = s.do(c, "XLEN", nil).AsInt64()
	}
	if err == nil {
		var summary []rueidis.RedisMessage
		if summary, err = s.do(c, "XPENDING", nil, s.cfg.group).ToArray(); err == nil {
			pending, err = summary[0].AsInt64()
		}
	}
	if err != nil {
		return "", s.trouble(err)
	}
	return fmt.Sprintf("the stream %q has %d entries, of which the group %q has not acked %d", s.cfg.stream, entries, s.cfg.group, pending), nil
}

// look makes stream and group if it may, and fails if they are missing.
func (s *source) look(c rueidis.Client) error {
	if !s.cfg.declare {
		return s.do(c, "XPENDING", nil, s.cfg.group).Error()
	}
	err := s.do(c, "XGROUP", []string{"CREATE"}, s.cfg.group, "0", "MKSTREAM").Error()
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsBusyGroup() {
		return nil // it is there
	}
	return err
}

// Receive hands over entries until ctx ends or Redis fails: first those that the consumer took
// before and has not acked, then new ones, and now and then those that others have left.
func (s *source) Receive(ctx context.Context, to intake.Sink) error {
	err := s.receive(ctx, to)
	s.reportTo(nil)
	if err == nil {
		return nil
	}
	s.hangUp()
	return s.trouble(err)
}

func (s *source) receive(ctx context.Context, to intake.Sink) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	if err := s.look(c); err != nil {
		return err
	}
	s.reportTo(to)
	s.acks.Do(func() { s.acking.Go(s.settleAll) })
	for from := "0"; from != "" && ctx.Err() == nil; {
		all, err := s.read(c, from)
		if err != nil {
			return err
		}
		from = s.take(to, all, true)
	}
	var claimed time.Time
	for ctx.Err() == nil {
		if time.Since(claimed) >= s.cfg.idle/2 {
			if err := s.claim(ctx, c, to); err != nil {
				return err
			}
			claimed = time.Now()
		}
		all, err := s.read(c, ">")
		if err != nil {
			return err
		}
		s.take(to, all, false)
	}
	return nil
}

// reportTo has troubles reported to a sink.
func (s *source) reportTo(to intake.Sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to, s.stuckWith = to, nil; to != nil {
		to.Report(nil)
	}
}

// read returns new entries, or those of the consumer that are not acked, after an id.
func (s *source) read(c rueidis.Client, from string) ([]rueidis.XRangeSlice, error) {
	cmd := c.B().Xreadgroup().Group(s.cfg.group, s.cfg.consumer).Count(readMany).Block(readWait.Milliseconds()).Streams().Key(s.cfg.stream).Id(from)
	all, err := s.run(c, cmd.Build()).AsXReadSlices()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return all[s.cfg.stream], err
}

// claim takes over the entries that consumers have left.
func (s *source) claim(ctx context.Context, c rueidis.Client, to intake.Sink) error {
	for from := "0-0"; ctx.Err() == nil; {
		answer, err := s.do(c, "XAUTOCLAIM", nil, s.cfg.group, s.cfg.consumer, strconv.FormatInt(s.cfg.idle.Milliseconds(), 10), from, "COUNT", strconv.Itoa(readMany)).ToArray()
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

// Close acks what was settled, and closes the connection.
func (s *source) Close() error {
	s.cancel()
	s.acking.Wait()
	s.hangUp()
	return nil
}
