package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// messageCopy is a copy of a message as a step has seen it. The answer is made from it without
// the lock.
type messageCopy struct {
	id           engine.ID
	queue        string
	key, content []byte
	record.State
	is       engine.State
	deadline int64        // of the lease
	worker   string       // of the lease
	started  int64        // when the lease began
	token    codec.Token  // of the lease, for the caller that leased it
	isolated bool         // it is leased by itself
	finished *engine.Info // of a finished message: all of it
}

// copyOf copies a message. Its content has been read.
func (c *call) copyOf(m *message) messageCopy {
	p := messageCopy{id: m.id, queue: m.q.name, key: c.keep(m, m.key), content: c.keep(m, m.content), State: m.State, is: m.state(c.ms)}
	p.Failures = c.keep(m, m.Failures)
	if p.is == engine.Leased {
		p.deadline, p.worker, p.started = m.lease.Deadline, m.worker(), (*codec.Nonce)(&m.lease.Nonce).Started()
	}
	return p
}

// copyRest is about how many bytes a copy and the answer take beside the message itself.
const copyRest = 512

func (p *messageCopy) bytes() int { return len(p.key) + len(p.content) + len(p.Failures) + copyRest }

// copyRoom is how many bytes are allocated at a time for bytes that are kept.
const copyRoom = 16 << 10

// keep returns bytes that outlast the step: a copy, unless they are of an sstable.
func (c *call) keep(m *message, b []byte) []byte {
	if len(b) == 0 || m.at.Src != nil {
		return b
	}
	if len(b) > cap(c.kept)-len(c.kept) {
		c.kept = make([]byte, 0, max(copyRoom, len(b)))
	}
	from := len(c.kept)
	c.kept = append(c.kept, b...)
	return c.kept[from:len(c.kept):len(c.kept)]
}

// info is the message as callers see it.
func (p *messageCopy) info(body bool) (engine.Info, error) {
	if p.finished != nil {
		return *p.finished, nil
	}
	i, err := p.brief(body)
	i.Failures = (&codec.Reader{B: p.Failures}).Failures() // well formed: the state was read
	return i, err
}

// brief is info without Failures.
func (p *messageCopy) brief(body bool) (engine.Info, error) {
	c, err := record.ParseContent(p.content)
	if err != nil {
		return engine.Info{}, err
	}
	i := engine.Info{
		ID: p.id, Queue: p.queue, Key: string(p.key), State: p.is, Due: rules.Instant(p.Due), Created: rules.Instant(c.Created),
		Expires: rules.Instant(p.Expires), Attempt: p.Attempt, Content: c.Content, Policy: c.Policy, LastError: string(codec.LastReason(p.Failures)),
	}
	if !body {
		i.Body = nil
	}
	switch p.is {
	case engine.Leased:
		i.Deadline, i.Worker, i.Started = rules.Instant(p.deadline), p.worker, rules.Instant(p.started)
	case engine.Dead:
		i.Died = rules.Instant(p.Died)
	}
	return i, nil
}

// lease is the answer of a lease.
func (p *messageCopy) lease() (engine.Lease, error) {
	i, err := p.brief(true)
	return engine.Lease{Info: i, Token: p.token.String()}, err
}
