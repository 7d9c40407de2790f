package dispatch

import (
	"context"
	"time"
)

// Standing is a subscription that is for answer after answer. Its turns begin and end;
// between two of them nothing is leased for it, and what is known of its queues is kept,
// so that a turn costs what it brings and not what queues there are.
//
// Its functions are called as those of any subscription. All its methods
// are for one goroutine at a time.
type Standing struct {
	d *Dispatcher
	s *Subscription
}

// Stand adds a subscription that has no turn yet, of an engine whose other side does
// not wait. It is for one answer a turn, and spreads over its queues.
func (d *Dispatcher) Stand(s *Subscription) *Standing {
	s.sort()
	s.Once, s.Spread, s.stands = true, true, true
	s.leaving, s.gone, s.rested = true, true, time.Now()
	d.watch()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enter(s)
	d.resting++
	return &Standing{d, s}
}

// Demand is what one turn is for.
type Demand struct {
	TTR    time.Duration
	Remote bool
	Ctx    context.Context // nothing is leased once it has ended
	Until  time.Time       // nor after this, once all queues have been asked
}

// Begin begins a turn.
func (t *Standing) Begin(o Demand) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		s.Fail(errClientClosed("lease"))
		return
	}
	s.TTR, s.Remote, s.Ctx, s.Until = o.TTR, o.Remote, o.Ctx, o.Until
	if s.parks {
		for _, q := range s.Queues {
			d.unpark(d.queues[q])
		}
		s.parks = false
	}
	s.leaving, s.gone, s.idle, s.told, s.out = false, false, nil, 0, 0
	s.turn++
	d.resting--
	if s.asks > 0 {
		d.kick()
	}
}

// Quiet reports whether there is nothing to be asked for it now; else it will be told.
func (t *Standing) Quiet() bool {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.quiet() {
		return true
	}
	if !s.awaits {
		s.awaits = true
		d.waiting = append(d.waiting, s)
	}
	d.kick()
	return false
}

func (s *Subscription) quiet() bool { return s.calls == 0 && s.wasAsked() }

// hush tells those that are quiet. Called with d.mu held, after a look at what is ready.
func (d *Dispatcher) hush() {
	left := d.waiting[:0]
	for _, s := range d.waiting {
		switch {
		case s.leaving:
			s.awaits = false
		case s.quiet():
			s.awaits = false
			s.Quiet()
		default:
			left = append(left, s)
		}
	}
	clear(d.waiting[len(left):])
	d.waiting = left
}

// leftOut notes that a round found no room for a ready queue. Called with d.mu held.
func (d *Dispatcher) leftOut(s *Subscription) {
	if s.looked != d.rounds {
		s.looked, s.out = d.rounds, 0
	}
	s.out++
}

// End ends a turn: what a call under way brings is still delivered, until ctx ends or
// patience is over (0: it has no end). What comes later is given back.
func (t *Standing) End(ctx context.Context, patience time.Duration) {
	d, s := t.d, t.s
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.leaving { // it never began
		return
	}
	s.rested = time.Now()
	d.rest(ctx, patience, s)
	d.resting++
}

// parkAfter is how long all who wait on a ready queue have to have rested until rounds
// no longer come to it.
const parkAfter = 100 * time.Millisecond

// park has rounds pass by a ready queue that nobody has wanted for long. Called with d.mu
// held.
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

// unpark has rounds come to a queue again. Called with d.mu held.
func (d *Dispatcher) unpark(b *belief) {
	if b.parked {
		d.parked.remove(&b.place)
		d.ready.add(&b.place)
		b.parked = false
	}
}

// Outlook is what is known of its queues.
func (t *Standing) Outlook() Outlook {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	return t.d.outlook(t.s)
}

// Leave takes the subscription away, between two turns.
func (t *Standing) Leave() {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	t.d.remove(t.s)
	t.d.resting--
}
