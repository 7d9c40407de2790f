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

// holderOf returns what a push has to know of the message with its key; nil: there is none.
func (q *queue) holderOf(m *message) (h rules.Holder) {
	switch {
	case m == nil || !m.live && !q.remembers(m):
		return h
	case m.live && m.holder != nil:
		h.Lease = codec.Token{Queue: q.number, ID: m.id, Nonce: m.holder.nonce}
	}
	h.State, h.Ending, h.Ended = m.state, m.ending, m.created
	return h
}

// push pushes one message; admitted: there is room for it.
func (q *queue) push(in *engine.Message, admitted bool) engine.PushResult {
	held := q.keyed(in.Key)
	h := q.holderOf(held)
	switch o, err := rules.Push(in, &h); {
	case o == engine.Replaced:
		return q.replace(held, in)
	case o != engine.Created:
		return held.result(o, err)
	case err != nil:
		return engine.PushResult{Err: err}
	}
	if !admitted {
		if err := q.settings.RefusePending(engine.Ref{Queue: q.name, Key: in.Key}, q.live()); err != nil {
			return engine.PushResult{Err: err}
		}
		if !q.engine.admit(1) {
			return engine.PushResult{Err: q.refuse(in.Key, engine.ErrLimit)}
		}
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

// replace gives the message with the key of a push what the push says.
func (q *queue) replace(m *message, in *engine.Message) engine.PushResult {
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
