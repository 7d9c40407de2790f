package memengine

import (
	"context"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// Push stores each message or applies its conflict policy. It waits for nothing but locks.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	results := make([]engine.PushResult, len(msgs))
	for name, items := range calls.GroupBy(len(msgs), func(i int) string { return msgs[i].Queue }) {
		for some := range slices.Chunk(items, stride) {
			e.with(name, true, func(q *queue) {
				for _, i := range some {
					q.expire() // pushed by the previous item
					results[i] = q.push(&msgs[i], false)
				}
			})
		}
	}
	return results, nil
}

// refuse returns the error of a push of a key.
func (q *queue) refuse(key string, err error) error {
	return engine.Refuse("push", engine.Ref{Queue: q.name, Key: key}, err)
}

// seat describes the existing message with the key of a push.
type seat struct {
	state engine.State // Gone: there is none
	due   int64

	policy *engine.Policy // unless Finished
	lease  codec.Token    // the newest, while it settles the message; zero: none
	ending engine.Ending  // when Finished
	ended  int64
}

// seatOf returns the seat of a message, live or finished.
func (q *queue) seatOf(m *message) seat {
	s := seat{state: m.state, due: m.due, ending: m.ending, ended: m.created}
	if m.live {
		s.policy = &m.kind.Policy
	}
	if m.live && m.holder != nil {
		s.lease = codec.Token{Queue: q.number, ID: m.id, Nonce: m.holder.nonce}
	}
	return s
}

// refusal returns the error of a push that conflicts with an existing message; nil: it may
// proceed.
func (q *queue) refusal(in *engine.Message, s *seat) error {
	switch {
	case in.Token != "":
		if !s.lease.Is(in.Token) {
			return q.refuse(in.Key, engine.ErrLeaseLost)
		}
		return nil
	case in.OnConflict == engine.Keep:
		return nil
	case s.state == engine.Finished:
		return engine.RefuseFinished(engine.Ref{Queue: q.name, Key: in.Key}, s.ending, rules.Instant(s.ended))
	case in.OnConflict == engine.Reject:
		return q.refuse(in.Key, engine.ErrExists)
	case s.state == engine.Leased:
		return q.refuse(in.Key, engine.ErrLeased)
	}
	return nil
}

// passes reports whether a push replaces a finished message.
func passes(policy engine.Conflict) bool { return policy != engine.Reject && policy != engine.Keep }

// push pushes one message; admitted: there is room for it.
func (q *queue) push(in *engine.Message, admitted bool) engine.PushResult {
	held := q.keyed(in.Key)
	if held != nil && (held.live || q.remembers(held) && !passes(in.OnConflict)) {
		return q.conflict(held, in)
	}
	if in.Token != "" {
		return engine.PushResult{Err: q.refuse(in.Key, engine.ErrLeaseLost)}
	}
	if err := q.refusePending(in.Key, q.live()); err != nil && !admitted {
		return engine.PushResult{Err: err}
	}
	if !admitted && !q.engine.admit(1) {
		return engine.PushResult{Err: q.refuse(in.Key, engine.ErrLimit)}
	}
	if held != nil {
		q.forget(held)
	}
	place, m := q.msgs.take()
	m.place, m.id = place, engine.ID(q.engine.lastID.Add(1))
	m.setContent(in, q.kindOf(in))
	m.due, m.created = in.Due.Resolve(q.now), q.ms
	m.setExpires(rules.Expiry(m.due, &m.kind.Policy))
	q.ids.add(m)
	if in.Key != "" {
		m.hash = q.hashKey(in.Key)
	}
	q.enlist(m)
	q.place(m)
	return m.result(engine.Created, nil)
}

// conflict applies the conflict policy of a push with the key that m holds.
func (q *queue) conflict(m *message, in *engine.Message) engine.PushResult {
	s := q.seatOf(m)
	if err := q.refusal(in, &s); err != nil {
		return m.result(0, err)
	}
	if in.OnConflict == engine.Keep {
		return m.result(engine.Kept, nil)
	}
	q.take(m)
	if in.OnConflict != engine.Rearm {
		m.setContent(in, q.kindOf(in))
	}
	if in.OnConflict != engine.KeepDue {
		m.due = in.Due.Resolve(q.now)
	}
	m.setExpires(rules.Expiry(m.due, &m.kind.Policy))
	q.renew(m)
	q.place(m)
	return m.result(engine.Replaced, nil)
}

// renew resets a message: attempt 0, and no old token settles it.
func (q *queue) renew(m *message) {
	m.attempt, m.holder = 0, nil
}

// result returns the result of a push that met m.
func (m *message) result(o engine.Outcome, err error) engine.PushResult {
	if errors.Is(err, engine.ErrLeaseLost) {
		return engine.PushResult{Err: err}
	}
	r := engine.PushResult{Outcome: o, ID: m.id, Due: rules.Instant(m.due), State: m.state, Err: err}
	if m.state == engine.Finished {
		r.Ending, r.Ended = m.ending, rules.Instant(m.created)
	}
	return r
}
