package tarry

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// subscription is a standing demand for messages of some queues. Its functions
// must not block; they are called with the dispatcher's lock held.
type subscription struct {
	queues []string
	ttr    time.Duration
	remote bool

	// room tells how many more messages of a queue could be started now, when taken
	// more are on their way already. It must keep that promise until they come.
	room func(queue string, taken int) int
	// deliver hands over leases of one queue, never more than there was room for:
	// now is the engine's clock when it answered, sent ours before it was asked.
	deliver func(leases []engine.Lease, now, sent time.Time)
	// fail tells that the engine could not be asked. The dispatcher tries again.
	fail func(err error)
	// noted, if not nil, tells of messages that ended before anybody got them.
	noted func(queue string, expired, died int)

	spread bool // it would rather have something of each queue than all of one

	// A subscription that is for one answer leaves with it. It fails only when none of
	// its queues can be asked. Nothing is leased for it once its context has ended, nor,
	// when its queues have all been asked, after the end of its wait.
	once  bool
	ctx   context.Context
	until time.Time
	asked chan struct{} // once: closed when all queues have been asked since it came

	// Guarded by dispatcher.mu.
	seats   []*list.Element // in the beliefs in its queues
	seen    int             // once: how many of its queues have been asked
	asks    int             // spread: how many of its queues are ready
	round   uint64          // spread: the round that left is for
	left    int             // spread: how many of its ready queues the round has still to come to
	taken   int             // messages on the way to it
	calls   int             // calls under way for it
	leaving bool            // nothing more is asked for
	gone    bool            // nothing more is delivered
	told    *call           // the last one whose failure it was told
	idle    chan struct{}   // closed when it is leaving and no call is under way for it
}

// outlook is what is known of a subscription's queues when it leaves.
type outlook struct {
	now  time.Time // the engine's clock
	next time.Time // when something may be there; zero: unknown
	err  error     // why a queue could not be asked
}

// over reports whether nothing is to be leased for it any more.
func (s *subscription) over(now time.Time) bool {
	return s.leaving || s.once && (s.ctx.Err() != nil || s.seen == len(s.queues) && !now.Before(s.until))
}

// leaver ends a subscription.
type leaver func(ctx context.Context, patience time.Duration) outlook

// subscribe adds a demand. The function returned takes it away again: nothing more
// is asked for it, what a call under way brings it is still delivered, and when it
// returns nothing is on the way to it any more. When ctx ends before that, or patience
// is over (0: it has no end), what comes later is given back.
func (d *dispatcher) subscribe(s *subscription) leaver {
	s.queues = slices.Clone(s.queues)
	slices.Sort(s.queues)
	s.queues = slices.Compact(s.queues)
	if lw, ok := d.eng.(engine.LeaseWaiter); ok && d.caps.LeaseWait {
		return d.poll(lw, s)
	}
	d.watchOnce.Do(func() { d.stopWatch = d.eng.Watch(d.hint) })

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.refuse(s)
	}
	s.seats = make([]*list.Element, len(s.queues))
	for i, q := range s.queues {
		b := d.queues[q]
		if b == nil {
			b = newBelief(q)
			d.queues[q] = b
			d.ask(b)
		}
		if b.err != nil && s.once && s.until.IsZero() {
			d.ask(b) // it cannot wait for the next try
		}
		s.seats[i] = b.seats.PushBack(s)
		if s.spread {
			b.spread = append(b.spread, s)
			if b.ready != nil {
				s.asks++
			}
		}
	}
	d.subs[s] = struct{}{}
	if s.once && !d.seen(s) {
		d.fresh = append(d.fresh, s)
	}
	if !d.running {
		d.running = true
		d.tasks.Go(d.run)
	}
	d.kick()
	return func(ctx context.Context, patience time.Duration) outlook { return d.leave(ctx, patience, s) }
}

// refuse tells a subscription that the client is closed.
func (d *dispatcher) refuse(s *subscription) leaver {
	s.fail(errClientClosed("lease"))
	return func(context.Context, time.Duration) outlook { return outlook{} }
}

func errClientClosed(op string) error {
	return &Error{Op: op, Err: ErrClosed, Hint: "the client was closed"}
}

func (d *dispatcher) leave(ctx context.Context, patience time.Duration, s *subscription) (o outlook) {
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
	if s.once && s.seen < len(s.queues) {
		d.fresh = slices.DeleteFunc(d.fresh, func(o *subscription) bool { return o == s })
	}
	for i, q := range s.queues {
		b := d.queues[q]
		if b.now.After(o.now) {
			o.now = b.now
		}
		if !b.next.IsZero() && (o.next.IsZero() || b.next.Before(o.next)) {
			o.next = b.next
		}
		if o.err == nil {
			o.err = b.err
		}
		b.seats.Remove(s.seats[i])
		if s.spread {
			b.spread = slices.DeleteFunc(b.spread, func(o *subscription) bool { return o == s })
		}
		d.forget(b)
	}
	if len(d.subs) == 0 {
		d.kick()
	}
	return o
}

// seen reports whether all queues of a new subscription have been asked since it came.
// Called with d.mu held.
func (d *dispatcher) seen(s *subscription) bool {
	for s.seen < len(s.queues) {
		if b := d.queues[s.queues[s.seen]]; b.ready != nil || b.busy {
			return false
		}
		s.seen++
	}
	close(s.asked)
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
func (d *dispatcher) hopeless(s *subscription) bool {
	for _, q := range s.queues {
		if d.queues[q].err == nil {
			return false
		}
	}
	return true
}
