package rabbitengine

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

const (
	// idleAfter is how long after the last poll deliveries of a queue are still taken in, and
	// kept for the next.
	idleAfter = 2 * time.Second
	// spentFor is how long a message whose attempts lapsed away is still here, where its
	// last token settles it.
	spentFor = 10 * time.Second
)

// stir has tend look again. Called with Engine.mu held.
func (e *Engine) stir() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// tend lapses leases at their deadlines, and gives back what nobody asks for any more.
func (e *Engine) tend() {
	for {
		timer := time.NewTimer(e.tendNext())
		select {
		case <-e.closing.Done():
			timer.Stop()
			return
		case <-e.wake:
			timer.Stop()
		case <-timer.C:
		}
		e.mu.Lock()
		e.lapse()
		back, spent, s := e.idle(), e.spentSince(time.Now().Add(-spentFor)), e.session
		e.mu.Unlock()
		if s != nil && len(spent)+len(back) > 0 {
			e.aside(func() { // for which the broker may take its time
				e.buryAll(context.Background(), s, spent)
				e.putBack(context.Background(), s, back)
			})
		}
	}
}

// aside does something beside the calls, and as they are, it is awaited by Close: what was
// published anew and is not acknowledged would come twice.
func (e *Engine) aside(do func()) {
	if e.gate.TryEnter() {
		e.tasks.Go(func() {
			defer e.gate.Leave()
			do()
		})
	}
}

// tendNext is how long nothing is to be tended.
func (e *Engine) tendNext() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	next := time.Hour
	if len(e.queues) > 0 {
		next = e.cfg.idleAfter / 2
	}
	if len(e.ends) > 0 {
		next = min(next, max(0, time.Until(e.ends[0].deadline)))
	}
	return next
}

// lapse ends leases whose deadlines have passed. Called with Engine.mu held.
func (e *Engine) lapse() {
	now := time.Now()
	for len(e.ends) > 0 && !e.ends[0].deadline.After(now) {
		l := heap.Pop(&e.ends).(*lease)
		l.q.leased--
		l.LastError = engine.Lapsed
		if l.Attempt >= l.MaxAttempts {
			e.spend(l.q, l.item)
			continue
		}
		l.q.here = slices.Insert(l.q.here, 0, l.item)
		l.q.tell()
	}
}

// spend puts a message aside that is dead. Called with Engine.mu held.
func (e *Engine) spend(q *queue, x *item) {
	x.Died = time.Now().UTC().Truncate(time.Millisecond)
	if x.lease != nil && x.lease.deadline.Before(x.Died) {
		x.Died = x.lease.deadline
	}
	q.spent = append(q.spent, x)
	q.died++
	q.tell()
}

// spentSince takes out what is dead since then. Called with Engine.mu held.
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

// unlease ends what an item's token may still do. Called with Engine.mu held.
func (e *Engine) unlease(x *item) {
	if x.lease != nil {
		delete(e.leases, x.lease.nonce)
		x.lease = nil
	}
}

// idle ends the flow of queues that nobody asks for, and takes out what is here of them, unless
// the broker takes nothing back. Called with Engine.mu held.
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

// putBack puts messages that nobody has begun to handle into their work queues again: there
// no attempt is counted, as it would be if the broker were told to take them back.
func (e *Engine) putBack(ctx context.Context, s *session, items []*item) {
	e.goRound(ctx, s, items, (*posting).put)
}

// buryAll makes messages dead whose attempts are used up.
func (e *Engine) buryAll(ctx context.Context, s *session, items []*item) {
	e.goRound(ctx, s, items, (*posting).bury)
}

// goRound publishes messages anew and acknowledges them. What fails is tried again until the
// session ends, when the broker has it back.
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
		later := time.NewTimer(againAfter)
		defer later.Stop()
		select {
		case <-later.C:
			e.goRound(context.Background(), s, failed, post)
		case <-s.ended:
		case <-e.closing.Done():
		}
	})
}

// againAfter is how long after it failed something is tried again.
const againAfter = time.Second

// forgetLeases forgets what came in a session. Called with Engine.mu held.
func (e *Engine) forgetLeases(s *session) {
	e.forgetItems(func(x *item) bool { return x.session == s })
	for _, q := range e.queues {
		if q.flow != nil && q.flow.session == s {
			q.flow = nil
		}
	}
}

// forgetItems forgets deliveries that the broker makes again. Called with Engine.mu held.
func (e *Engine) forgetItems(gone func(*item) bool) {
	var nonces []token.Nonce
	for nonce, l := range e.leases {
		if gone(l.item) {
			nonces = append(nonces, nonce)
			if l.at >= 0 {
				e.ends.remove(l)
				l.q.leased--
			}
		}
	}
	for _, nonce := range nonces {
		delete(e.leases, nonce)
	}
	for _, q := range e.queues {
		q.here = slices.DeleteFunc(q.here, gone)
		q.spent = slices.DeleteFunc(q.spent, gone)
		q.tell()
	}
}

// unpolled notes that a poll of a queue has ended.
func (e *Engine) unpolled(q *queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q.polls--
	q.polled = time.Now()
	e.stir()
}
