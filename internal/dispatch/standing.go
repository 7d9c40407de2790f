package dispatch

import (
	"cmp"
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Standing is a subscription for a series of answers, one in each turn. Between turns
// nothing is leased for it, but its beliefs are kept. So the cost of a turn depends on its
// messages and not on the number of queues. It is not safe for concurrent use.
type Standing struct {
	d *Dispatcher
	s *Subscription
}

// Stand adds a Standing, which has no turn yet. The engine must not be one that waits by
// itself.
func (d *Dispatcher) Stand(queues []string) (*Standing, error) {
	s := &Subscription{
		Queues: queues, leaving: true, gone: true, turnEnded: time.Now(),
		answer: newAnswer(&engine.Wait{}), woken: make(chan struct{}, 1),
	}
	s.Queues = sorted(s.Queues)
	d.watch()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClientClosed("lease")
	}
	if err := d.countNames(len(s.Queues)); err != nil {
		return nil, err
	}
	d.enter(s)
	d.resting++
	return &Standing{d, s}, nil
}

// company bounds how long a turn that has messages waits for calls under way.
const company = 100 * time.Millisecond

// Lease is one turn. It is Dispatcher.Lease for the queues of the Standing instead of w.Queues.
func (t *Standing) Lease(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	a := newAnswer(&w)
	t.begin(ctx, &w, a)
	t.await(ctx, a, w.For)
	t.end(ctx, company)
	return t.d.result(ctx, a)
}

// begin starts a turn.
func (t *Standing) begin(ctx context.Context, w *engine.Wait, a *answer) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	s.answer = a
	if d.closed {
		a.fail(errClientClosed("lease"))
		return
	}
	s.TTR, s.Remote, s.Worker = w.TTR, w.Remote, w.Worker
	s.ends, s.until = ctx.Done(), time.Now().Add(w.For)
	for _, q := range s.Queues {
		if !s.hasParked && (w.For > 0 || s.failing == 0) {
			break
		}
		b := d.queues[q]
		d.unpark(b)
		if b.err != nil && w.For == 0 { // it cannot wait for the next attempt
			d.ask(b)
		}
	}
	s.hasParked = false
	s.leaving, s.gone, s.idle, s.failReported, s.leftOutQueues, s.round = false, false, nil, 0, 0, 0
	s.began, s.askedQueues, s.late = d.rounds, 0, false
	d.resting--
	if s.ready() > 0 {
		d.kick()
	}
}

// fillFor is how long a turn with messages continues while there is more.
const fillFor = 10 * time.Millisecond

// moreFor is how long a turn without messages continues after its wait while a queue has more.
// Workers with much room may leave it nothing, call after call.
const moreFor = time.Second

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
			over.Reset(moreFor) // no round may come by then
		case <-t.s.woken:
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
	if s.late = late; d.quiet(s) {
		return came, true
	}
	if !s.wakeWhenQuiet {
		s.wakeWhenQuiet = true
		d.waiting = append(d.waiting, s)
	}
	d.kick()
	return came, false
}

// quiet reports whether a turn may end: when it has nothing, its wait is over and its queues
// have been asked; or when none is to be asked or being asked, not even for another
// subscription. What it has does not wait for the pace. Called with d.mu held.
func (d *Dispatcher) quiet(s *Subscription) bool {
	switch {
	case s.calls > 0:
		return false
	case s.late && d.empty(s):
		return true
	}
	return s.inCalls() == 0 &&
		(s.ready() <= s.leftOutQueues || len(s.answer.Messages) > 0 && d.moment(time.Now()) < d.next)
}

// wake makes a turn check whether it is over.
func (s *Subscription) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// wakeQuiet wakes the turns that are quiet. Called with d.mu held, after plan.
func (d *Dispatcher) wakeQuiet() {
	left := d.waiting[:0]
	for _, s := range d.waiting {
		switch {
		case s.leaving:
			s.wakeWhenQuiet = false
		case d.quiet(s):
			s.wakeWhenQuiet = false
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
func (t *Standing) end(ctx context.Context, patience time.Duration) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.leaving { // it never started
		return
	}
	s.turnEnded = time.Now()
	d.stopRequests(ctx, patience, s)
	d.resting++
	for queue := range s.held {
		s.answer.tell(queue).Held = true
	}
	clear(s.held)
	if len(s.answer.Messages) == 0 {
		d.outlook(s)
	}
}

// outlook completes an answer without messages with what is known of the queues. Called with
// d.mu held.
func (d *Dispatcher) outlook(s *Subscription) {
	a, nextMS := s.answer, none
	for _, q := range s.Queues {
		b := d.queues[q]
		if b.next != none && (nextMS == none || b.next < nextMS) {
			nextMS = b.next
		}
		a.err = cmp.Or(a.err, b.err)
	}
	a.NextDue = instant(nextMS)
	if !d.now.IsZero() {
		a.Now = instant(d.now.Add(time.Since(d.nowAt)).UnixMilli())
	}
}

// parkAfter is how long all subscriptions of a ready queue must have rested before rounds
// skip it.
const parkAfter = 100 * time.Millisecond

// park makes rounds skip a ready queue if all its subscriptions have rested for long. Called
// with d.mu held.
func (d *Dispatcher) park(b *belief, now time.Time) {
	for l := b.seats.first; l != nil; l = l.next {
		if s := l.of; !s.isLease() || !s.leaving || now.Sub(s.turnEnded) < parkAfter {
			return
		}
	}
	for l := b.seats.first; l != nil; l = l.next {
		l.of.hasParked = true
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
