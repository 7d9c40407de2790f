package memengine

import (
	"cmp"
	"context"
	"slices"

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

// PushAtomic keeps all messages or none, also over several queues. Those that
// stood in the way have an error in the results.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.begin(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.end()
	queues := e.lockAll(msgs)
	results, err := e.pushAll(queues, msgs)
	var hints []string
	for _, q := range queues {
		if q.hinted() {
			hints = append(hints, q.name)
		}
		q.mu.Unlock()
	}
	for _, name := range hints {
		e.hint(name)
	}
	return results, err
}

// lockAll locks the queues of the messages, in the order of their numbers so that
// two such calls never wait for each other, and brings them up to the present.
func (e *Engine) lockAll(msgs []engine.Message) map[string]*queue {
again:
	queues := make(map[string]*queue)
	for _, m := range msgs {
		if queues[m.Queue] == nil {
			queues[m.Queue] = e.queue(m.Queue, true)
		}
	}
	var order []*queue
	for _, q := range queues {
		order = append(order, q)
	}
	slices.SortFunc(order, func(a, b *queue) int { return cmp.Compare(a.number, b.number) })
	for i, q := range order {
		q.mu.Lock()
		if q.retired {
			for _, locked := range order[:i+1] {
				locked.mu.Unlock()
			}
			goto again
		}
	}
	for _, q := range order {
		q.refresh()
	}
	return queues
}

// pushAll first finds out whether any message would fail; with all queues locked
// the answer holds when it then pushes them.
func (e *Engine) pushAll(queues map[string]*queue, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, len(msgs))
	seats := make(map[name]*seat)
	var news int64
	var first error
	for i := range msgs {
		q := queues[msgs[i].Queue]
		created, err := q.rehearse(seats, &msgs[i])
		if created {
			news++
		}
		if err != nil {
			results[i].Err = err
			if m := q.keys[msgs[i].Key]; m != nil {
				results[i] = m.result(0, err)
			}
		}
		first = cmp.Or(first, err)
	}
	if first != nil {
		return results, first
	}
	if !e.admit(news) {
		for i := range results {
			results[i].Err = queues[msgs[i].Queue].limit(msgs[i].Key)
			first = cmp.Or(first, results[i].Err)
		}
		return results, first
	}
	for i := range msgs {
		q := queues[msgs[i].Queue]
		q.advance() // what the items before pushed may be past its expiry already
		results[i] = q.push(&msgs[i], true)
	}
	return results, nil
}

// seat is what an atomic push so far would have made of a key's live message.
type seat struct {
	held, leased bool
	due          int64
	policy       engine.Policy
}

type name struct{ queue, key string }

// rehearse says what pushing one message would do, after those whose effect is
// in seats.
func (q *queue) rehearse(seats map[name]*seat, in *engine.Message) (created bool, err error) {
	if in.Key == "" {
		return true, nil
	}
	n := name{q.name, in.Key}
	s := seats[n]
	if s == nil {
		s = &seat{}
		if m := q.keys[in.Key]; m != nil {
			*s = seat{held: true, leased: m.state == engine.Leased, due: m.due, policy: m.Policy}
		}
		seats[n] = s
	}
	if s.held {
		if err := q.refusal(in.Key, s.leased, in.OnConflict); err != nil || in.OnConflict == engine.Keep {
			return false, err
		}
	}
	created = !s.held
	if created || in.OnConflict != engine.KeepDue {
		s.due = in.Due.Resolve(q.now)
	}
	if created || in.OnConflict != engine.Rearm {
		s.policy = in.Policy
	}
	s.held = expiry(s.due, &s.policy) >= q.ms
	return created, nil
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
