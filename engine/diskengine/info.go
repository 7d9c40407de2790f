package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// head is a ready message as callers see it, without its content and failures.
func (m *message) head() engine.Info {
	return engine.Info{
		ID: m.id, Queue: m.q.name, Key: string(m.key), State: engine.Ready, Due: rules.Instant(m.Due), Created: rules.Instant(m.Created),
		Expires: rules.Instant(m.Expires), Attempt: m.Attempt, Policy: m.Policy, LastError: string(codec.LastReason(m.Failures)),
	}
}

// brief is a message, whose content was read, as callers see it, without its failures. It
// outlasts the step.
func (c *call) brief(m *message, body bool) (engine.Info, error) {
	content, err := record.ParseContent(m.content)
	if err != nil {
		return engine.Info{}, err
	}
	i := m.head()
	i.State, i.Content = m.state(c.ms), content.Content
	if i.Body = nil; body {
		i.Body = c.keep(m, content.Body)
	}
	switch i.State {
	case engine.Leased:
		i.Deadline, i.Worker, i.Started = rules.Instant(m.lease.Deadline), m.worker(), started(m.lease)
	case engine.Dead:
		i.Died = rules.Instant(m.Died)
	}
	return i, nil
}

// info is brief with the failures.
func (c *call) info(m *message, body bool) (engine.Info, error) {
	i, err := c.brief(m, body)
	i.Failures = (&codec.Reader{B: m.Failures}).Failures() // well formed: the state was read
	return i, err
}

// shared is how many bytes are allocated at a time for small bodies: a caller that retains one
// of them retains the others.
const shared = 4 << 10

// keep returns the body of a message so that it outlasts the step: a copy, unless it is of an
// sstable.
func (c *call) keep(m *message, body []byte) []byte {
	if len(body) == 0 || m.at.Src != nil {
		return body
	}
	if len(body) > cap(c.kept)-len(c.kept) {
		n := len(body)
		if c.kept != nil { // there may be more
			n = max(shared, n)
		}
		c.kept = make([]byte, 0, n)
	}
	from := len(c.kept)
	c.kept = append(c.kept, body...)
	return c.kept[from:len(c.kept):len(c.kept)]
}
