package memengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Settle ends or extends leases. It does not wait for anything but locks.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.begin(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.end()
	settled := make([]engine.Settled, len(s))
	for i := range s {
		settled[i] = e.settle(&s[i])
	}
	return settled, nil
}

func (e *Engine) settle(s *engine.Settlement) engine.Settled {
	lost := &engine.Error{Op: "settle", Err: engine.ErrLeaseLost,
		Hint: "it was settled before, or someone else decided on the message after the lease's deadline"}
	if err := s.Check(); err != nil {
		return engine.Settled{Err: err}
	}
	t, ok := parseToken(s.Token)
	if !ok {
		return engine.Settled{Err: lost}
	}
	e.mu.RLock()
	q := e.numbered[t.queue]
	e.mu.RUnlock()
	if q == nil {
		return engine.Settled{Err: lost}
	}
	out := engine.Settled{Err: lost}
	e.visit(q, func(q *queue) {
		m := q.ids[t.id]
		if m == nil || !m.held || m.nonce != t.nonce || !q.settle(m, s) {
			lost.Queue, lost.ID = q.name, t.id
			return
		}
		out = engine.Settled{State: m.state}
		switch m.state {
		case engine.Scheduled, engine.Ready:
			out.Until = instant(m.due)
		case engine.Leased:
			out.Until = instant(m.deadline)
		}
	})
	return out
}

// settle carries out a settlement of m's lease, which may have lapsed: m is then
// ready or dead. It returns false when the lapse made it dead and its
// key is by now another's, so that it cannot come back.
func (q *queue) settle(m *message, s *engine.Settlement) bool {
	last := m.attempt >= m.MaxAttempts
	revives := s.Do == engine.Snooze || s.Do == engine.Release || s.Do == engine.Extend || s.Do == engine.Retry && !last
	if m.state == engine.Dead && revives && q.keys[m.key] != nil {
		return false
	}
	m.held = s.Do == engine.Extend
	switch s.Do {
	case engine.Ack:
		q.drop(m)
		m.state = engine.Gone
	case engine.Retry:
		if last {
			q.die(m, q.ms, s.KeptReason())
			break
		}
		when := engine.When{In: m.RetryDelay(m.attempt)}
		if s.When != nil {
			when = *s.When
		}
		m.lastError = s.KeptReason()
		q.move(m, when.Resolve(q.now))
	case engine.Bury:
		q.die(m, q.ms, s.KeptReason())
	case engine.Snooze:
		m.giveBack()
		q.move(m, s.When.Resolve(q.now))
	case engine.Release:
		m.giveBack()
		q.move(m, m.due)
	case engine.Extend:
		q.take(m)
		m.deadline = q.deadline(m, s.TTR)
		q.put(m, engine.Leased)
	}
	return true
}
