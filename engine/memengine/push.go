package memengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Push keeps each message or applies its conflict policy. It does not wait for
// anything but locks.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.begin(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.end()
	results := make([]engine.PushResult, len(msgs))
	for i := range msgs {
		e.with(msgs[i].Queue, true, func(q *queue) {
			results[i] = q.push(&msgs[i], false)
		})
	}
	return results, nil
}

// The hints of push's errors.
const (
	hintExists = "choose another key, or on_conflict keep, replace, keep_due or rearm"
	hintLimit  = "wait until messages have been handled, or raise Config.MaxPending"
	hintLeased = "someone is handling it right now: it is too late to change or cancel it"
)

// fail describes what went wrong with a key of this queue.
func (q *queue) fail(op, key string, err error, hint string) error {
	return &engine.Error{Op: op, Queue: q.name, Key: key, Err: err, Hint: hint}
}

func (q *queue) limit(key string) error { return q.fail("push", key, engine.ErrLimit, hintLimit) }

// refusal says why a push does not get past the live message in its way; nil: it
// does.
func (q *queue) refusal(key string, leased bool, policy engine.Conflict) error {
	switch {
	case policy == engine.Reject:
		return q.fail("push", key, engine.ErrExists, hintExists)
	case policy != engine.Keep && leased:
		return q.fail("push", key, engine.ErrLeased, hintLeased)
	}
	return nil
}

// push pushes one message; admitted says that there is room for it.
func (q *queue) push(in *engine.Message, admitted bool) engine.PushResult {
	if m := q.keys[in.Key]; m != nil {
		return q.conflict(m, in)
	}
	if !admitted && !q.engine.admit(1) {
		return engine.PushResult{Err: q.limit(in.Key)}
	}
	m := &message{
		id:      engine.ID(q.engine.lastID.Add(1)),
		key:     in.Key,
		Content: copyContent(in.Content),
		Policy:  copyPolicy(in.Policy),
		due:     in.Due.Resolve(q.now),
		created: q.ms,
	}
	m.expires = expiry(m.due, &m.Policy)
	q.ids[m.id] = m
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
		m.Content, m.Policy = copyContent(in.Content), copyPolicy(in.Policy)
	}
	if in.OnConflict != engine.KeepDue {
		m.due = in.Due.Resolve(q.now)
	}
	m.expires = expiry(m.due, &m.Policy)
	m.renew()
	q.place(m)
	return m.result(engine.Replaced, nil)
}

// renew begins a message anew: no attempt counts, no old token settles.
func (m *message) renew() {
	m.attempt = 0
	m.held = false
}

func (m *message) result(o engine.Outcome, err error) engine.PushResult {
	return engine.PushResult{Outcome: o, ID: m.id, Due: instant(m.due), State: m.state, Err: err}
}
