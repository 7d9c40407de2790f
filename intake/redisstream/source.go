package redisstream

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/redisurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

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

// Connect connects, and makes stream and group if it may. It fails if they are missing.
func (s *source) Connect(context.Context) (intake.Conn, string, error) {
	client, err := rueidis.NewClient(s.client)
	if err != nil {
		return nil, "", s.trouble(err)
	}
	c := conn{s, client}
	if s.declare {
		err = c.run(c.B().XgroupCreate().Key(s.stream).Group(s.group).Id("0").Mkstream().Build()).Error()
		if e, ok := rueidis.IsRedisErr(err); ok && e.IsBusyGroup() {
			err = nil // it is there
		}
	} else {
		err = c.run(c.B().Xpending().Key(s.stream).Group(s.group).Build()).Error()
	}
	var entries int64
	if err == nil {
		entries, err = c.run(c.B().Xlen().Key(s.stream).Build()).AsInt64()
	}
	if err != nil {
		c.Close()
		return nil, "", s.trouble(err)
	}
	return c, fmt.Sprintf("the stream %q has %d entries and the group %q", s.stream, entries, s.group), nil
}

// run runs a command to its end, for at most the timeout: the entries of a read that is given
// up would be the consumer's all the same.
func (c conn) run(cmd rueidis.Completed) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout+readWait)
	defer cancel()
	return c.Do(ctx, cmd)
}

// Receive hands over entries until ctx ends or Redis fails: first those that the consumer took
// before and has not acked, then new ones, and now and then those that others have left.
func (c conn) Receive(ctx context.Context, to *intake.Sink) error {
	to.Report(nil)
	from, claimed := "0", time.Time{}
	for ctx.Err() == nil {
		if time.Since(claimed) >= c.idle/2 {
			if err := c.claim(ctx, to); err != nil {
				return c.trouble(err)
			}
			claimed = time.Now()
		}
		read := c.B().Xreadgroup().Group(c.group, c.consumer).Count(readMany).Block(readWait.Milliseconds()).Streams().Key(c.stream).Id(from)
		all, err := c.run(read.Build()).AsXReadSlices()
		if err != nil && !rueidis.IsRedisNil(err) {
			return c.trouble(err)
		}
		entries := all[c.stream]
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
	idle, held := strconv.FormatInt(c.idle.Milliseconds(), 10), to.Held()
	for from := "0-0"; ctx.Err() == nil; {
		claim := c.B().Xautoclaim().Key(c.stream).Group(c.group).Consumer(c.consumer).MinIdleTime(idle).Start(from).Count(readMany)
		answer, err := c.run(claim.Build()).ToArray()
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
	err := c.run(c.B().Xack().Key(c.stream).Group(c.group).Id(ids...).Build()).Error()
	if err == nil && c.remove {
		err = c.run(c.B().Xdel().Key(c.stream).Id(ids...).Build()).Error()
	}
	return c.trouble(err)
}

// SetAside adds an entry to the stream for refused ones, with the reason.
func (c conn) SetAside(m *intake.Message, reason string) error {
	to := c.stream + refusedSuffix
	add := c.B().Xadd().Key(to).Id("*").FieldValue()
	for _, f := range m.Receipt.([]rueidis.XRangeFieldValue) {
		add = add.FieldValue(f.Field, f.Value)
	}
	if err := c.run(add.FieldValue("refused", reason).Build()).Error(); err != nil {
		return &intake.Trouble{Code: "refused_stream", Err: err, Hint: "refused entries wait for the stream " + to + "; let the user add to it"}
	}
	return nil
}

func init() {
	intake.Register("redis", open)
	intake.Register("rediss", open)
}

// source is a stream, read by a consumer of a group.
type source struct {
	client                  rueidis.ClientOption
	timeout                 time.Duration // of each answer
	stream, group, consumer string
	declare, remove         bool
	idle                    time.Duration
}

func open(u *url.URL, o *intake.Options) (intake.Source, error) {
	r := storeurl.New(u)
	s := &source{client: redisurl.Client(r, u, o.TLS, o.Timeout), timeout: o.Timeout, group: "tarry", idle: time.Minute}
	if s.consumer, _ = os.Hostname(); s.consumer == "" {
		s.consumer = "tarry"
	}
	if r.Text("stream", &s.stream); s.stream == "" {
		r.Fail("stream is missing, as in redis://127.0.0.1:6379/0?stream=delayed")
	}
	r.Text("group", &s.group)
	if r.Text("consumer", &s.consumer); s.group == "" || s.consumer == "" {
		r.Fail("group or consumer is empty; leave it out")
	}
	r.Bool("declare", &s.declare)
	r.Bool("delete", &s.remove)
	if r.Duration("idle", &s.idle); s.idle < time.Second {
		r.Fail("idle is at least 1s")
	}
	return s, r.Done()
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
	if err == nil {
		return nil
	}
	e, answered := rueidis.IsRedisErr(err)
	if !answered {
		return &intake.Trouble{Code: intake.CodeUnreachable, Err: err, Hint: "check that Redis runs at " + strings.Join(s.client.InitAddress, ", ") + "; the intake connects again by itself"}
	}
	for _, t := range troubles {
		if strings.HasPrefix(e.Error(), t.prefix) {
			return &intake.Trouble{Code: t.code, Err: err, Hint: t.hint}
		}
	}
	return &intake.Trouble{Code: intake.CodeFailed, Err: err, Hint: "Redis returned this error"}
}
