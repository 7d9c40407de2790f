package redisstream

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
)

// source is a stream, read by a consumer of a group.
type source struct {
	cfg  config
	opts *intake.Options
}

// conn is a connection to Redis. It is an intake.Conn.
type conn struct {
	*source
	rueidis.Client
}

const (
	readMany = 256                    // entries of a read
	readWait = 500 * time.Millisecond // how long a read waits for an entry

	refusedSuffix = ".refused" // of the stream for what can never be pushed
)

// connect connects, and makes stream and group if it may. It fails if they are missing.
func (s *source) connect() (c conn, err error) {
	client, err := rueidis.NewClient(s.cfg.client)
	if err != nil {
		return c, s.trouble(err)
	}
	c = conn{s, client}
	if s.cfg.declare {
		err = c.do("XGROUP", []string{"CREATE"}, s.cfg.group, "0", "MKSTREAM").Error()
		if e, ok := rueidis.IsRedisErr(err); ok && e.IsBusyGroup() {
			err = nil // it is there
		}
	} else {
		err = c.do("XPENDING", nil, s.cfg.group).Error()
	}
	if err != nil {
		c.Close()
	}
	return c, s.trouble(err)
}

// do runs a command on the stream.
func (c conn) do(verb string, before []string, after ...string) rueidis.RedisResult {
	return c.run(c.B().Arbitrary(verb).Args(before...).Keys(c.cfg.stream).Args(after...).Build())
}

// run runs a command to its end, for at most the timeout: the entries of a read that is given
// up would be the consumer's all the same.
func (c conn) run(cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Timeout+readWait)
	defer cancel()
	return c.Do(ctx, cmd)
}

// Test makes what it may, and says what it found.
func (s *source) Test(context.Context) (found string, err error) {
	c, err := s.connect()
	if err != nil {
		return "", err
	}
	defer c.Close()
	entries, err := c.do("XLEN", nil).AsInt64()
	return fmt.Sprintf("the stream %q has %d entries and the group %q", s.cfg.stream, entries, s.cfg.group), s.trouble(err)
}

// Receive hands over entries until ctx ends or Redis fails: first those that the consumer took
// before and has not acked, then new ones, and now and then those that others have left.
func (s *source) Receive(ctx context.Context, to *intake.Sink) error {
	c, err := s.connect() // again: after a failover the address may lead elsewhere
	if err != nil {
		return err
	}
	defer c.Close()
	to.Begin(c)
	defer to.End()
	from, claimed := "0", time.Time{}
	for ctx.Err() == nil {
		if time.Since(claimed) >= s.cfg.idle/2 {
			if err := c.claim(ctx, to); err != nil {
				return s.trouble(err)
			}
			claimed = time.Now()
		}
		read := c.B().Xreadgroup().Group(s.cfg.group, s.cfg.consumer).Count(readMany).Block(readWait.Milliseconds()).Streams().Key(s.cfg.stream).Id(from)
		all, err := c.run(read.Build()).AsXReadSlices()
		if err != nil && !rueidis.IsRedisNil(err) {
			return s.trouble(err)
		}
		entries := all[s.cfg.stream]
		c.take(to, entries, from != ">")
		if len(entries) == 0 {
			from = ">"
		} else if from != ">" {
			from = entries[len(entries)-1].ID
		}
	}
	return nil
}

// claim takes over the entries that consumers have left. Its own may be among them.
func (c conn) claim(ctx context.Context, to *intake.Sink) error {
	idle, held := strconv.FormatInt(c.cfg.idle.Milliseconds(), 10), to.Held()
	for from := "0-0"; ctx.Err() == nil; {
		answer, err := c.do("XAUTOCLAIM", nil, c.cfg.group, c.cfg.consumer, idle, from, "COUNT", strconv.Itoa(readMany)).ToArray()
		if err != nil {
			return err
		}
		all, err := answer[1].AsXRangeSlices()
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(e rueidis.XRangeSlice) bool { return held[e.ID] })
		c.take(to, all, true)
		if from, err = answer[0].ToString(); err != nil || from == "0-0" {
			return err
		}
	}
	return nil
}

// take hands over entries.
func (c conn) take(to *intake.Sink, all []rueidis.XRangeSlice, again bool) {
	for _, e := range all {
		m := &intake.Message{ID: e.ID, Redelivered: again, Receipt: e.FieldValues}
		if e.FieldValues == nil { // it was deleted
			_ = c.Ack([]*intake.Message{m}) // else it comes again
			continue
		}
		for _, f := range e.FieldValues {
			if f.Field == "body" {
				m.Draft.Body = []byte(f.Value)
			} else {
				m.Field(f.Field, f.Value)
			}
		}
		to.Take(m)
	}
}

// Ack acks entries.
func (c conn) Ack(ms []*intake.Message) error {
	ids := make([]string, len(ms))
	for n, m := range ms {
		ids[n] = m.ID
	}
	err := c.do("XACK", nil, append([]string{c.cfg.group}, ids...)...).Error()
	if err == nil && c.cfg.remove {
		err = c.do("XDEL", nil, ids...).Error()
	}
	return c.trouble(err)
}

// SetAside adds an entry to the stream for refused ones, with the reason.
func (c conn) SetAside(m *intake.Message, reason string) error {
	to, args := c.cfg.stream+refusedSuffix, []string{"*"}
	for _, f := range m.Receipt.([]rueidis.XRangeFieldValue) {
		args = append(args, f.Field, f.Value)
	}
	err := c.run(c.B().Arbitrary("XADD").Keys(to).Args(append(args, "refused", reason)...).Build()).Error()
	if err == nil {
		return nil
	}
	return &intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused entries wait for the stream " + to + "; let the user add to it"}
}
