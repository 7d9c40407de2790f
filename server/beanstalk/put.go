package beanstalk

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/server/access"
)

const (
	// mostPuts is how many jobs that arrived together are pushed together.
	mostPuts = 256
	// maxAttempts is how often a job may be reserved. The store allows no more.
	maxAttempts = engine.MaxMaxAttempts
	// ttrHeader holds a job's ttr if that is longer than a lease can be.
	ttrHeader = "beanstalk-ttr"
)

var putPool = sync.Pool{New: func() any { return new([mostPuts]tarry.Draft) }}

// put carries out a put.
func (c *conn) put(a args) (string, error) {
	switch {
	case a.size > int64(c.s.cfg.MaxJob):
		return c.skip(a.size+2, "JOB_TOO_BIG")
	case len(a.rest) > 0:
		return "BAD_FORMAT", nil
	case !c.producer:
		c.producer = true
		c.s.counts.producers.Add(1)
	}
	size := int(a.size) + 2
	switch err := c.readBody(size); {
	case errors.Is(err, errNoMemory):
		return c.skip(int64(size), "OUT_OF_MEMORY")
	case err != nil:
		return c.quit(a)
	}
	body, whole := bytes.CutSuffix(c.in.take(size), []byte("\r\n"))
	switch {
	case !whole:
		return "EXPECTED_CRLF", nil
	case c.s.draining.Load():
		return "DRAINING", nil
	}
	if err := c.allows(access.Push, c.use.name); err != nil {
		return "", err
	}
	c.gather(&a, body)
	return "", nil
}

// readBody reads until a body is there. Each 64 KiB of a big one must come in time.
func (c *conn) readBody(size int) error {
	var by time.Time
	for at := 0; c.in.buffered() < size; {
		if size > smallInput && c.in.buffered() >= at {
			at = c.in.buffered() + bigInput
			by = time.Now().Add(c.s.limits.read)
		}
		if err := c.more(size, by); err != nil {
			return err
		}
	}
	return nil
}

// skip drops the next n bytes of the input before the answer.
func (c *conn) skip(n int64, answer string) (string, error) {
	for {
		some := min(n, int64(c.in.buffered()))
		c.in.take(int(some))
		if n -= some; n == 0 {
			return answer, nil
		}
		if c.more(smallInput, time.Time{}) != nil {
			return c.quit(args{})
		}
	}
}

// gather adds a job to those that are pushed together.
func (c *conn) gather(a *args, body []byte) {
	if len(c.puts) == mostPuts {
		c.push()
	}
	if c.puts == nil {
		c.puts = putPool.Get().(*[mostPuts]tarry.Draft)[:0]
	}
	var m tarry.Draft
	m.Queue, m.Due.In, m.Body = c.use.name, a.delay, body
	// All is set, so that the defaults of a queue change nothing.
	m.Terms = engine.Terms{Priority: new(a.pri), MaxAttempts: maxAttempts, TTR: min(a.ttr, engine.MaxTTR), ExpireAfter: engine.Never, Remember: engine.Never, Isolate: &never}
	if a.ttr > engine.MaxTTR {
		m.Headers = []tarry.MessageHeader{{Name: ttrHeader, Value: a.ttr.String()}}
	}
	c.puts = append(c.puts, m)
}

var never = false

// push pushes what is gathered, and answers.
func (c *conn) push() {
	if len(c.puts) == 0 {
		return
	}
	puts := c.puts
	c.puts = nil
	all, err := make([]tarry.Pushed, 1), error(nil)
	if len(puts) == 1 {
		all[0], err = c.s.c.PushDraft(c.ctx, puts[0])
	} else {
		all, err = c.s.c.PushMany(c.ctx, puts)
	}
	for i := range puts {
		one := err
		if one == nil {
			one = all[i].Err
		}
		if one != nil {
			c.say(c.answerTo(one))
			continue
		}
		c.use.jobs.Add(1)
		c.s.counts.jobs.Add(1)
		c.sayNumber("INSERTED ", uint64(all[i].ID))
	}
	if c.ctx.Err() == nil { // else an abandoned call may still read them
		clear(puts)
		putPool.Put((*[mostPuts]tarry.Draft)(puts[:mostPuts]))
	}
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
