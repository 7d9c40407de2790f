package memengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// Settle ends or extends leases. It waits for nothing but locks.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.calls.Enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
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
	if m == nil || m.holder == nil || m.holder.nonce != t.Nonce {
		return engine.Settled{Err: lost(q.name, t.ID)}
	}
	v := rules.Settle(s, &m.kind.Policy, m.due, m.attempt, q.now)
	if m.state == engine.Dead && v.State.Live() && q.byKey(m.key()) != nil {
		return engine.Settled{Err: lost(q.name, t.ID)}
	}
	if s.Do == engine.Retry || s.Do == engine.Bury {
		m.fail(q.ms, v.Reason)
	}
	if v.State != engine.Leased && v.State != engine.Gone {
		m.holder = nil
		q.prioritize(m, v.Priority)
	}
	switch v.State {
	case engine.Gone:
		q.leave(m, engine.Acked, q.ms, "")
		return engine.Settled{State: engine.Gone}
	case engine.Dead:
		q.die(m, q.ms)
		q.dropDead()
		return engine.Settled{State: engine.Dead}
	case engine.Leased:
		q.take(m)
		q.put(m, engine.Leased, q.deadline(m, s.TTR))
	default:
		m.attempt = v.Attempt
		q.move(m, v.Due)
	}
	return engine.Settled{State: m.state, Until: rules.Instant(m.end)}
}
