package rabbitengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

const (
	// idleAfter is how long after the last poll deliveries of a queue are accepted and kept
	// for the next poll.
	idleAfter = 2 * time.Second
	// spentFor is how long a message that died by lapses is kept, so that its last token can
	// settle it.
	spentFor = 10 * time.Second
)

// stir wakes tend. Called with Engine.mu held.
func (e *Engine) stir() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// tend ends leases at their deadlines, and returns the messages of queues without polls.
func (e *Engine) tend() {
	for {
		select {
		case <-e.closing.Done():
			return
		case <-e.wake:
		case <-time.After(e.tendNext()):
		}
		e.mu.Lock()
		e.lapse()
		back, spent, s := e.idle(), e.spentSince(time.Now().Add(-spentFor)), e.session
		e.mu.Unlock()
		if s != nil && len(spent)+len(back) > 0 {
			e.aside(func() { // the broker may be slow
				e.buryAll(context.Background(), s, spent)
				e.putBack(context.Background(), s, back)
			})
		}
	}
}

// aside runs do in the background. Close waits for it: a message that is published again but
// not acknowledged would come twice.
func (e *Engine) aside(do func()) {
	if e.gate.TryEnter() {
		e.tasks.Go(func() {
			defer e.gate.Leave()
			do()
		})
	}
}

// tendNext returns how long tend may sleep.
func (e *Engine) tendNext() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := time.Hour
	if len(e.queues) > 0 {
		next = e.cfg.idleAfter / 2
	}
	if first, ok := e.ends.Next(); ok {
		next = min(next, max(0, time.Until(first)))
	}
	return next
}

// lapse ends leases past their deadlines. Called with Engine.mu held.
func (e *Engine) lapse() {
	for _, l := range e.ends.Advance(time.Now()) {
		l.q.leased--
		l.LastError = engine.Lapsed
		if l.Attempt >= l.MaxAttempts {
			e.spend(l.q, l)
			continue
		}
		l.q.here = slices.Insert(l.q.here, 0, l)
		l.q.tell()
	}
}

// spend puts a dead message aside. Called with Engine.mu held.
func (e *Engine) spend(q *queue, x *item) {
	x.Died = time.Now().UTC().Truncate(time.Millisecond)
	if !x.deadline.IsZero() && x.deadline.Before(x.Died) {
		x.Died = x.deadline
	}
	q.spent = append(q.spent, x)
	q.died++
	q.tell()
}

// spentSince takes the messages that died before since. Called with Engine.mu held.
func (e *Engine) spentSince(since time.Time) (all []*item) {
	for _, q := range e.queues {
		n := 0
		for n < len(q.spent) && !q.spent[n].Died.After(since) {
			e.unlease(q.spent[n])
			n++
		}
		all, q.spent = append(all, q.spent[:n]...), q.spent[n:]
	}
	return all
}

// unlease invalidates an item's token. Called with Engine.mu held.
func (e *Engine) unlease(x *item) { delete(e.leases, x.nonce) }

// idle stops the flow of queues without polls and takes their fetched messages. It does
// nothing while the broker accepts no messages. Called with Engine.mu held.
func (e *Engine) idle() (back []*item) {
	if e.session != nil && e.session.blocked.Load() != nil {
		return nil
	}
	for name, q := range e.queues {
		if q.polls > 0 || time.Since(q.polled) < e.cfg.idleAfter {
			continue
		}
		if f := q.flow; f != nil {
			q.flow = nil
			n := f.consumers
			e.tasks.Go(func() { f.stop(n) })
		}
		for _, x := range q.here {
			e.unlease(x)
		}
		back, q.here = append(back, q.here...), nil
		if q.leased == 0 && len(q.spent) == 0 {
			delete(e.queues, name)
		}
	}
	return back
}

// putBack publishes unhandled messages to their work queues again. Returning them to the
// broker instead would count an attempt.
func (e *Engine) putBack(ctx context.Context, s *session, items []*item) {
	e.goRound(ctx, s, items, (*posting).put)
}

// buryAll makes messages without attempts left dead.
func (e *Engine) buryAll(ctx context.Context, s *session, items []*item) {
	e.goRound(ctx, s, items, (*posting).bury)
}

// goRound publishes messages again and acknowledges them. It retries failures until the
// session ends, when the broker has the messages back.
func (e *Engine) goRound(ctx context.Context, s *session, items []*item, post func(*posting, context.Context, *engine.Info)) {
	items = slices.DeleteFunc(items, func(x *item) bool { return x.ch.IsClosed() })
	if len(items) == 0 {
		return
	}
	p := posting{op: "settle", s: s}
	for _, x := range items {
		post(&p, ctx, &x.Info)
	}
	var failed []*item
	for i, err := range p.confirm(ctx) {
		if err == nil {
			_ = items[i].ack()
		} else {
			failed = append(failed, items[i])
		}
	}
	if failed == nil {
		return
	}
	e.aside(func() {
		select {
		case <-time.After(againAfter):
			e.goRound(context.Background(), s, failed, post)
		case <-s.ctx.Done():
		case <-e.closing.Done():
		}
	})
}

// againAfter is the pause before a retry.
const againAfter = time.Second

// forgetLeases drops the leases of a session. Called with Engine.mu held.
func (e *Engine) forgetLeases(s *session) {
	e.forgetItems(func(x *item) bool { return x.session == s })
	for _, q := range e.queues {
		if q.flow != nil && q.flow.session == s {
			q.flow = nil
		}
	}
}

// forgetItems drops deliveries that the broker will repeat. Called with Engine.mu held.
func (e *Engine) forgetItems(gone func(*item) bool) {
	for nonce, l := range e.leases {
		if gone(l) {
			delete(e.leases, nonce)
			if _, active := e.ends.Cancel(l.end); active {
				l.q.leased--
			}
		}
	}
	for _, q := range e.queues {
		q.here = slices.DeleteFunc(q.here, gone)
		q.spent = slices.DeleteFunc(q.spent, gone)
		q.tell()
	}
}
