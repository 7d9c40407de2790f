package beanstalk

import (
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

// puts gathers jobs that arrived together, so that they are pushed together.
type puts struct {
	n      int
	bytes  int
	drafts [mostPuts]tarry.Draft
	pri    [mostPuts]uint32
}

const (
	mostPuts     = 256
	mostPutBytes = 256 << 10

	// maxAttempts is how often a job may be reserved. The store allows no more.
	maxAttempts = engine.MaxMaxAttempts
	// ttrHeader holds a job's ttr if that is longer than a lease can be.
	ttrHeader = "beanstalk-ttr"
)

var putPool = sync.Pool{New: func() any { return new(puts) }}

// put carries out a put.
func (c *conn) put(a args) {
	switch {
	case a.size > int64(c.s.cfg.MaxJob):
		c.skip(a.size+2, "JOB_TOO_BIG")
		return
	case len(a.rest) > 0:
		c.say("BAD_FORMAT")
		return
	case !c.producer:
		c.producer = true
		c.s.counts.producers.Add(1)
	}
	size := int(a.size) + 2
	switch err := c.readBody(size); {
	case errors.Is(err, errNoMemory):
		c.skip(int64(size), "OUT_OF_MEMORY")
		return
	case err != nil:
		c.stop()
		return
	}
	body := c.in.take(size)
	switch {
	case string(body[size-2:]) != "\r\n":
		c.say("EXPECTED_CRLF")
	case c.s.draining.Load():
		c.say("DRAINING")
	case !c.may(access.Push, c.use.name):
		c.fail(errForbidden)
	default:
		c.gather(&a, body[:size-2])
	}
}

// readBody reads until a body is there.
func (c *conn) readBody(size int) error {
	if c.in.buffered() >= size {
		return nil
	}
	if size > smallInput {
		defer c.deadline(time.Time{})
	}
	for at := 0; c.in.buffered() < size; {
		if size > smallInput && c.in.buffered() >= at {
			at = c.in.buffered() + bigInput
			c.deadline(time.Now().Add(c.s.cfg.ReadTimeout))
		}
		if err := c.more(size); err != nil {
			return err
		}
	}
	return nil
}

// skip drops the next n bytes of the input, and then answers.
func (c *conn) skip(n int64, answer string) {
	for {
		some := min(n, int64(c.in.buffered()))
		c.in.take(int(some))
		if n -= some; n == 0 {
			c.say(answer)
			return
		}
		if c.more(smallInput) != nil {
			c.stop()
			return
		}
	}
}

// gather adds a job to those that are pushed together.
func (c *conn) gather(a *args, body []byte) {
	if c.puts != nil && (c.puts.n == mostPuts || c.puts.bytes+len(body) > mostPutBytes) {
		c.push()
	}
	if c.puts == nil {
		c.puts = putPool.Get().(*puts)
	}
	g := c.puts
	g.pri[g.n] = a.pri
	m := &g.drafts[g.n]
	m.Queue, m.Due.In, m.Body = c.use.name, a.delay, body
	// All is set, so that the defaults of a queue change nothing.
	m.Terms = engine.Terms{Priority: &g.pri[g.n], MaxAttempts: maxAttempts, TTR: a.ttr, ExpireAfter: engine.Never, Remember: engine.Never, Isolate: &never}
	m.Headers = nil
	if a.ttr > engine.MaxTTR {
		m.TTR, m.Headers = engine.MaxTTR, []tarry.MessageHeader{{Name: ttrHeader, Value: a.ttr.String()}}
	}
	g.n++
	g.bytes += len(body)
}

var never = false

// push pushes what is gathered, and answers.
func (c *conn) push() {
	g := c.puts
	if g == nil {
		return
	}
	c.puts = nil
	var pushed [1]tarry.Pushed
	all, err := pushed[:], error(nil)
	if g.n == 1 {
		pushed[0], err = c.s.c.PushDraft(c.ctx, g.drafts[0])
	} else {
		all, err = c.s.c.PushMany(c.ctx, g.drafts[:g.n])
	}
	for i := range g.n {
		one := err
		if one == nil {
			one = all[i].Err
		}
		if one != nil {
			c.fail(one)
			continue
		}
		c.use.jobs.Add(1)
		c.s.counts.jobs.Add(1)
		c.sayNumber("INSERTED ", uint64(all[i].ID))
	}
	if c.ctx.Err() != nil {
		c.in.lent = true // an abandoned call may still read the bodies
		return
	}
	clear(g.drafts[:g.n])
	g.n, g.bytes = 0, 0
	putPool.Put(g)
}

// ttrOf returns the ttr of a job.
func ttrOf(m *engine.Info) time.Duration {
	if m.TTR == engine.MaxTTR {
		for _, h := range m.Headers {
			if d, err := time.ParseDuration(h.Value); h.Name == ttrHeader && err == nil {
				return max(d, engine.MaxTTR)
			}
		}
	}
	return m.TTR
}
