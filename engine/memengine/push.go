package memengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/group"
)

// Push keeps each message or applies its conflict policy. It does not wait for
// anything but locks.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.begin(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.end()
	results := make([]engine.PushResult, len(msgs))
	for name, items := range group.By(len(msgs), func(i int) string { return msgs[i].Queue }) {
		for some := range slices.Chunk(items, stride) {
			e.with(name, true, func(q *queue) {
				for _, i := range some {
					q.expire() // what the item before pushed
					results[i] = q.push(&msgs[i], false)
				}
			})
		}
	}
	return results, nil
}

// refuse is the error of a push of a key.
func (q *queue) refuse(key string, err error) error {
	return engine.Refuse("push", engine.Ref{Queue: q.name, Key: key}, err)
}

// refusal says why a push does not get past the live message in its way; nil: it
// does.
func (q *queue) refusal(key string, leased bool, policy engine.Conflict) error {
	switch {
	case policy == engine.Reject:
		return q.refuse(key, engine.ErrExists)
	case policy != engine.Keep && leased:
		return q.refuse(key, engine.ErrLeased)
	}
	return nil
}

// push pushes one message; admitted says that there is room for it.
func (q *queue) push(in *engine.Message, admitted bool) engine.PushResult {
	if m := q.byKey(in.Key); m != nil {
		return q.conflict(m, in)
	}
	if !admitted && !q.engine.admit(1) {
		return engine.PushResult{Err: q.refuse(in.Key, engine.ErrLimit)}
	}
	place, m := q.msgs.take()
	m.place, m.id = place, engine.ID(q.engine.lastID.Add(1))
	m.setContent(in, q.kindOf(in))
	m.due, m.created = in.Due.Resolve(q.now), q.ms
	m.setExpires(expiry(m.due, &m.kind.Policy))
	q.ids.add(m)
	if in.Key != "" {
		m.hash = q.hashKey(in.Key)
	}
	q.enlist(m)
	q.place(m)
	return m.result(engine.Created, nil)
}

// conflict applies the policy of a push whose key m holds.
func (q *queue) conflict(m *message, in *engine.Message) engine.PushResult {
	if err := q.refusal(in.Key, m.state == engine.Leased, in.OnConflict); err != nil {
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
	m.setExpires(expiry(m.due, &m.kind.Policy))
	q.renew(m)
	q.place(m)
	return m.result(engine.Replaced, nil)
}

// renew begins a message anew: no attempt counts, no old token settles.
func (q *queue) renew(m *message) {
	m.attempt, m.nonce = 0, nil
}

func (m *message) result(o engine.Outcome, err error) engine.PushResult {
	return engine.PushResult{Outcome: o, ID: m.id, Due: instant(m.due), State: m.state, Err: err}
}
