package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Subscription is a standing demand for messages of some queues. Its functions
// must not block; they are called with the dispatcher's lock held.
type Subscription struct {
	Queues []string
	TTR    time.Duration
	Remote bool

	// Room tells how many more messages of a queue could be started now, when taken
	// more are on their way already. It must keep that promise until they come. full:
	// there is none for any queue.
	Room func(queue string, taken int) (n int, full bool)
	// Deliver hands over leases of one queue, never more than there was room for:
	// now is the engine's clock when it answered, sent ours before it was asked.
	Deliver func(leases []engine.Lease, now, sent time.Time)
	// Fail tells that the engine could not be asked. The dispatcher tries again.
	Fail func(err error)
	// Noted, if not nil, tells of messages that ended before anybody got them.
	Noted func(queue string, expired, died int)

	Spread bool // it would rather have something of each queue than all of one

	// A subscription that is for one answer leaves with it. It fails only when none of
	// its queues can be asked. Nothing is leased for it once its context has ended, nor,
	// when its queues have all been asked, after the end of its wait.
	Once  bool
	Ctx   context.Context
	Until time.Time
	Asked chan struct{} // once: closed when all queues have been asked since it came

	// Guarded by Dispatcher.mu.
	seats   []link[Subscription] // in the beliefs in its queues
	seen    int                  // once: how many of its queues have been asked
	asks    int                  // spread: how many of its queues are ready
	round   uint64               // spread: the round that left is for
	left    int                  // spread: how many of its ready queues the round has still to come to
	full    uint64               // the last round in which it had no room for any queue
	taken   int                  // messages on the way to it
	calls   int                  // calls under way for it
	leaving bool                 // nothing more is asked for
	gone    bool                 // nothing more is delivered
	told    *call                // the last one whose failure it was told
	idle    chan struct{}        // closed when it is leaving and no call is under way for it
}

// Outlook is what is known of a subscription's queues when it leaves.
type Outlook struct {
	Now  time.Time // the engine's clock
	Next time.Time // when something may be there; zero: unknown
	Err  error     // why a queue could not be asked
}

// over reports whether nothing is to be leased for it any more.
func (s *Subscription) over(now time.Time) bool {
	return s.leaving || s.Once && (s.Ctx.Err() != nil || s.seen == len(s.Queues) && !now.Before(s.Until))
}

// room tells how many more messages of a queue it could start, none below 0.
func (s *Subscription) room(queue string, taken int) int {
	n, full := s.Room(queue, taken)
	if full {
		return 0
	}
	return max(0, n)
}

// Leave ends a subscription.
type Leave func(ctx context.Context, patience time.Duration) Outlook

// Subscribe adds a demand. The function returned takes it away again: nothing more
// is asked for it, what a call under way brings it is still delivered, and when it
// returns nothing is on the way to it any more. When ctx ends before that, or patience
// is over (0: it has no end), what comes later is given back.
func (d *Dispatcher) Subscribe(s *Subscription) Leave {
	s.Queues = slices.Clone(s.Queues)
	slices.Sort(s.Queues)
	s.Queues = slices.Compact(s.Queues)
	if lw, ok := d.eng.(engine.LeaseWaiter); ok && d.caps.LeaseWait {
		return d.poll(lw, s)
	}
	d.watchOnce.Do(func() { d.stopWatch = d.eng.Watch(d.hint) })

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.refuse(s)
	}
	s.seats = make([]link[Subscription], len(s.Queues))
	for i, q := range s.Queues {
		b := d.queues[q]
		if b == nil {
			b = newBelief(q)
			d.queues[q] = b
			d.ask(b)
		}
		if b.err != nil && s.Once && s.Until.IsZero() {
			d.ask(b) // it cannot wait for the next try
		}
		s.seats[i].of = s
		b.seats.add(&s.seats[i])
		if s.Spread {
			b.spread++
			if b.ready {
				s.asks++
			}
		}
	}
	d.subs[s] = struct{}{}
	if s.Once && !d.seen(s) {
		d.fresh = append(d.fresh, s)
	}
	if !d.running {
		d.running = true
		d.tasks.Go(d.run)
	}
	d.kick()
	return func(ctx context.Context, patience time.Duration) Outlook { return d.leave(ctx, patience, s) }
}

// refuse tells a subscription that the client is closed.
func (d *Dispatcher) refuse(s *Subscription) Leave {
	s.Fail(errClientClosed("lease"))
	return func(context.Context, time.Duration) Outlook { return Outlook{} }
}

func errClientClosed(op string) error {
	return &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the client was closed"}
}

func (d *Dispatcher) leave(ctx context.Context, patience time.Duration, s *Subscription) (o Outlook) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.leaving = true
	if s.calls > 0 {
		s.idle = make(chan struct{})
		d.mu.Unlock()
		await(ctx, patience, s.idle)
		d.mu.Lock()
	}
	s.gone = true
	delete(d.subs, s)
	if s.Once && s.seen < len(s.Queues) {
		d.fresh = slices.DeleteFunc(d.fresh, func(o *Subscription) bool { return o == s })
	}
	nowMS, nextMS := none, none
	for i, q := range s.Queues {
		b := d.queues[q]
		nowMS = max(nowMS, b.now)
		if b.next != none && (nextMS == none || b.next < nextMS) {
			nextMS = b.next
		}
		if o.Err == nil {
			o.Err = b.err
		}
		b.seats.remove(&s.seats[i])
		if s.Spread {
			b.spread--
		}
		d.forget(b)
	}
	if len(d.subs) == 0 {
		d.kick()
	}
	o.Now, o.Next = instant(nowMS), instant(nextMS)
	return o
}

// seen reports whether all queues of a new subscription have been asked since it came.
// Called with d.mu held.
func (d *Dispatcher) seen(s *Subscription) bool {
	for s.seen < len(s.Queues) {
		if b := d.queues[s.Queues[s.seen]]; b.ready || b.busy {
			return false
		}
		s.seen++
	}
	close(s.Asked)
	return true
}

// await waits for done to be closed, until ctx ends or patience is over, if that is
// not 0, and reports whether it was.
func await(ctx context.Context, patience time.Duration, done <-chan struct{}) bool {
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}

// hopeless reports whether none of the subscription's queues can be asked. Called with
// d.mu held.
func (d *Dispatcher) hopeless(s *Subscription) bool {
	for _, q := range s.Queues {
		if d.queues[q].err == nil {
			return false
		}
	}
	return true
}
