package memengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
)

// Settle ends or extends leases. It waits for nothing but locks.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.begin(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.end()
	settled := make([]engine.Settled, len(s))
	tokens := make([]codec.Token, len(s))
	for i := range s {
		tokens[i], _ = codec.ParseToken(s[i].Token) // no queue has the number 0
	}
	for number, items := range calls.GroupBy(len(s), func(i int) uint64 { return tokens[i].Queue }) {
		q := e.byNumber(number)
		for some := range slices.Chunk(items, stride) {
			known := q != nil && e.visit(q, func(q *queue) {
				for _, i := range some {
					q.expire() // made ready by the previous item
					settled[i] = q.settle(tokens[i], &s[i])
					settled[i].Queue = q.name
				}
			})
			if !known {
				for _, i := range some {
					settled[i] = unknown(&s[i])
				}
			}
		}
	}
	return settled, nil
}

// unknown answers a settlement of a queue that does not exist.
func unknown(s *engine.Settlement) engine.Settled {
	if err := s.Check(); err != nil {
		return engine.Settled{Err: err}
	}
	return engine.Settled{Err: lost("", 0)}
}

func lost(queue string, id engine.ID) error {
	return engine.Refuse("settle", engine.Ref{Queue: queue, ID: id}, engine.ErrLeaseLost)
}

// settle carries out a settlement. If its lease has lapsed, the message is ready or dead.
// The lease is lost if the message died and another one holds its key, because it cannot
// become live again.
func (q *queue) settle(t codec.Token, s *engine.Settlement) engine.Settled {
	if err := s.Check(); err != nil {
		return engine.Settled{Err: err}
	}
	m := q.byID(t.ID)
	if m == nil || m.nonce == nil || *m.nonce != t.Nonce {
		return engine.Settled{Err: lost(q.name, t.ID)}
	}
	last := m.attempt >= m.kind.MaxAttempts
	revives := s.Do == engine.Snooze || s.Do == engine.Release || s.Do == engine.Extend || s.Do == engine.Retry && !last
	if m.state == engine.Dead && revives && q.byKey(m.key()) != nil {
		return engine.Settled{Err: lost(q.name, t.ID)}
	}
	if s.Do != engine.Extend {
		m.nonce = nil
	}
	switch s.Do {
	case engine.Ack:
		q.leave(m, engine.Acked, q.ms)
		return engine.Settled{State: engine.Gone}
	case engine.Retry:
		if last {
			return q.bury(m, s.KeptReason())
		}
		when := engine.When{In: m.kind.RetryDelay(m.attempt)}
		if s.When != nil {
			when = *s.When
		}
		m.setError(s.KeptReason())
		q.move(m, when.Resolve(q.now))
	case engine.Bury:
		return q.bury(m, s.KeptReason())
	case engine.Snooze:
		m.giveBack()
		q.move(m, s.When.Resolve(q.now))
	case engine.Release:
		m.giveBack()
		q.move(m, m.due)
	case engine.Extend:
		q.take(m)
		q.put(m, engine.Leased, q.deadline(m, s.TTR))
	}
	return engine.Settled{State: m.state, Until: codec.Instant(m.end)}
}

// bury makes a message dead, and drops one if there are too many.
func (q *queue) bury(m *message, reason string) engine.Settled {
	q.die(m, q.ms, reason)
	q.dropDead()
	return engine.Settled{State: engine.Dead}
}
