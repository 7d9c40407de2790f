package memengine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// PushAtomic stores all messages or none, across queues. The results have an error for the
// messages that failed.
func (e *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if err := e.calls.Enter(ctx, "push"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	if err := engine.CheckAtomic(msgs); err != nil {
		return nil, err
	}
	queues := e.lockAll(msgs)
	results, err := e.pushAll(queues, msgs)
	var hints []string
	for _, q := range queues {
		if q.takeHint() {
			hints = append(hints, q.name)
		}
		q.mu.Unlock()
	}
	for _, name := range hints {
		e.hint(name)
	}
	return results, err
}

// lockAll locks and refreshes the queues of the messages, in the order of their numbers,
// which avoids deadlocks.
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

// pushAll first checks whether any message would fail, and then pushes them. All queues are
// locked, so the check stays valid.
func (e *Engine) pushAll(queues map[string]*queue, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, len(msgs))
	r := rehearsal{seats: make(map[name]*seat), live: make(map[*queue]int64)}
	var first error
	for i := range msgs {
		q := queues[msgs[i].Queue]
		err := r.push(q, &msgs[i])
		if err != nil {
			results[i].Err = err
			if m := q.keyed(msgs[i].Key); m != nil && !errors.Is(err, engine.ErrLimit) {
				results[i] = m.result(0, err)
			}
		}
		first = cmp.Or(first, err)
	}
	if first != nil {
		return results, first
	}
	if !e.admit(r.news) {
		for i := range results {
			results[i].Err = queues[msgs[i].Queue].refuse(msgs[i].Key, engine.ErrLimit)
			first = cmp.Or(first, results[i].Err)
		}
		return results, first
	}
	for i := range msgs {
		q := queues[msgs[i].Queue]
		q.expire() // pushed by earlier items
		results[i] = q.push(&msgs[i], true)
	}
	return results, nil
}

type name struct{ queue, key string }

// seat is what the next push of a key would meet.
type seat struct {
	rules.Holder
	due    int64
	policy *engine.Policy
}

// rehearsal is what the pushes so far would have created.
type rehearsal struct {
	seats map[name]*seat
	live  map[*queue]int64 // additional live messages
	news  int64            // new messages of all queues, including those that expire at once
}

// push returns the error that one push would have.
func (r *rehearsal) push(q *queue, in *engine.Message) error {
	s := new(seat)
	if in.Key != "" {
		n := name{q.name, in.Key}
		if r.seats[n] == nil {
			m := q.keyed(in.Key)
			if s.Holder = q.holderOf(m); s.State.Live() {
				s.due, s.policy = m.due, &m.kind.Policy
			}
			r.seats[n] = s
		}
		s = r.seats[n]
	}
	o, err := rules.Push(in, &s.Holder)
	created := o == engine.Created
	if created && err == nil {
		err = q.settings.RefusePending(engine.Ref{Queue: q.name, Key: in.Key}, q.live()+r.live[q])
	}
	if err != nil || o == engine.Kept {
		return err
	}
	if created {
		r.news++
		r.live[q]++
	}
	if created || in.OnConflict != engine.KeepDue {
		s.due = in.Due.Resolve(q.now)
	}
	if created || in.OnConflict != engine.Rearm {
		s.policy = new(in.Resolve(q.settings.Terms()))
	}
	s.Holder = rules.Holder{State: engine.Scheduled}    // or ready
	if at := rules.Expiry(s.due, s.policy); at < q.ms { // it expires before the next push
		r.live[q]--
		s.Holder = rules.Holder{Ending: engine.Expired, Ended: at}
		if at+rules.Millis(s.policy.Remember) > q.ms {
			s.State = engine.Finished
		}
	}
	return nil
}
