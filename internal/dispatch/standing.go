package dispatch

import (
	"context"
	"time"
)

// Standing is a subscription for a series of answers, one in each turn. Between turns
// nothing is leased for it, but its beliefs are kept. So the cost of a turn depends on its
// messages and not on the number of queues. It is not safe for concurrent use.
type Standing struct {
	d *Dispatcher
	s *Subscription
}

// Stand adds a Standing, which has no turn yet. It leases some messages of each queue. The
// engine must not be one that waits by itself.
func (d *Dispatcher) Stand(queues []string) (*Standing, error) {
	s := &Subscription{
		Queues: queues, Spread: true, stands: true, leaving: true, gone: true, rested: time.Now(),
		answer: newAnswer(&Order{}), held: make(map[string]struct{}), look: make(chan struct{}, 1),
	}
	s.sort()
	d.watch()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admit(s); err != nil {
		return nil, err
	}
	d.enter(s)
	d.resting++
	return &Standing{d, s}, nil
}

// Lease is Dispatcher.Lease for the queues of a Standing. The call is one turn.
func (t *Standing) Lease(ctx context.Context, o Order) (Answer, error) {
	a := newAnswer(&o)
	a.fills = true
	t.begin(ctx, &o, a)
	t.await(ctx, a, o.Wait)
	return t.d.result(ctx, a, t.end(ctx, company))
}

// begin starts a turn.
func (t *Standing) begin(ctx context.Context, o *Order, a *answer) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	s.answer = a
	if d.closed {
		a.fail(errClientClosed("lease"))
		return
	}
	s.TTR, s.Remote, s.ends, s.until = o.TTR, o.Remote, ctx.Done(), time.Now().Add(o.Wait)
	if s.parks {
		for _, q := range s.Queues {
			d.unpark(d.queues[q])
		}
		s.parks = false
	}
	s.leaving, s.gone, s.idle, s.told, s.leftOutQueues, s.round = false, false, nil, 0, 0, 0
	d.resting--
	if s.readyQueues > 0 {
		d.kick()
	}
}

// fillFor is how long a turn with messages continues while there is more.
const fillFor = 10 * time.Millisecond

// await waits for the end of a turn: when it is full; when it has messages and no queue has
// more at once; or when the wait is over and all queues have been asked.
func (t *Standing) await(ctx context.Context, a *answer, wait time.Duration) {
	over := time.NewTimer(wait)
	defer over.Stop()
	var full <-chan time.Time
	late := false
	for {
		select {
		case <-a.done:
			return
		case <-ctx.Done():
			return
		case <-full:
			return
		case <-over.C:
			late = true
		case <-t.s.look:
		}
		came, quiet := t.quiet(late)
		if quiet {
			return
		}
		if came && full == nil {
			full = time.After(fillFor)
		}
	}
}

// quiet reports whether messages came, and whether the turn may end. It may if messages came
// or the wait is over, and nothing is left to ask. Otherwise the turn is woken later.
func (t *Standing) quiet(late bool) (came, quiet bool) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if came = len(s.answer.Messages) > 0; !came && !late {
		return false, false
	}
	if s.quiet() {
		return came, true
	}
	if !s.awaits {
		s.awaits = true
		d.waiting = append(d.waiting, s)
	}
	d.kick()
	return came, false
}

// quiet reports whether all queues of a Standing have been asked and no call for one of them
// is under way, not even for another subscription.
func (s *Subscription) quiet() bool { return s.calls == 0 && s.queuesInCalls == 0 && s.wasAsked() }

// wake makes a turn check whether it is over.
func (s *Subscription) wake() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

// wakeQuiet wakes the turns that are quiet. Called with d.mu held, after plan.
func (d *Dispatcher) wakeQuiet() {
	left := d.waiting[:0]
	for _, s := range d.waiting {
		switch {
		case s.leaving:
			s.awaits = false
		case s.quiet():
			s.awaits = false
			s.wake()
		default:
			left = append(left, s)
		}
	}
	clear(d.waiting[len(left):])
	d.waiting = left
}

// leftOut notes that the current round found no room for a ready queue of a Standing. Called
// with d.mu held.
func (d *Dispatcher) leftOut(s *Subscription) {
	if s.leftOutRound != d.rounds {
		s.leftOutRound, s.leftOutQueues = d.rounds, 0
	}
	s.leftOutQueues++
}

// end ends a turn. Messages of calls under way are still delivered until ctx ends or
// patience is over (0: no limit); later ones are released.
func (t *Standing) end(ctx context.Context, patience time.Duration) (o Outlook) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.leaving { // it never started
		return o
	}
	s.rested = time.Now()
	d.rest(ctx, patience, s)
	d.resting++
	for queue := range s.held {
		s.answer.tell(queue).Held = true
	}
	clear(s.held)
	if len(s.answer.Messages) == 0 {
		o = d.outlook(s)
	}
	return o
}

// parkAfter is how long all subscriptions of a ready queue must have rested before rounds
// skip it.
const parkAfter = 100 * time.Millisecond

// park makes rounds skip a ready queue whose subscriptions have all rested for long. Called
// with d.mu held.
func (d *Dispatcher) park(b *belief, now time.Time) {
	for l := b.seats.first; l != nil; l = l.next {
		if s := l.of; !s.stands || !s.leaving || now.Sub(s.rested) < parkAfter {
			return
		}
	}
	for l := b.seats.first; l != nil; l = l.next {
		l.of.parks = true
	}
	d.ready.remove(&b.place)
	d.parked.add(&b.place)
	b.parked = true
}

// unpark puts a parked queue back into the ready list. Called with d.mu held.
func (d *Dispatcher) unpark(b *belief) {
	if b.parked {
		d.parked.remove(&b.place)
		d.ready.add(&b.place)
		b.parked = false
	}
}

// Leave removes the subscription, between turns.
func (t *Standing) Leave() {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	t.d.remove(t.s)
	t.d.resting--
}
