package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Subscription asks for messages of some queues. It belongs to a worker, which has
// callbacks, or to a Standing, which has an answer. The callbacks run without a lock of the
// dispatcher, concurrently, and never after the subscription has left.
type Subscription struct {
	Queues []string
	TTR    time.Duration
	Remote bool
	Worker string

	Room *Room
	// Deliver gets leases of one or several queues, never more than there was room for. now
	// is the engine's clock at its answer; sent is our clock before the call.
	Deliver func(leases []engine.Lease, now, sent time.Time)
	// Fail gets the error when the engine could not be asked. The dispatcher tries again.
	Fail func(err error)
	// Noted gets how many messages ended without being leased.
	Noted func(queue string, expired, died int)

	// A Standing fails only when none of its queues can be asked. Nothing is leased for it
	// once its context has ended, or once its wait is over and all its queues were asked.
	answer *answer         // nil: of a worker
	ends   <-chan struct{} // closed when the context ends
	until  time.Time

	// Guarded by Dispatcher.mu.
	seats         []link[Subscription] // its places in the beliefs of its queues
	onlyQueue     *belief              // of its queue, if it has just one
	failing       int                  // queues that could not be asked the last time
	readyQueues   int                  // spreads: ready queues
	queuesInCalls int                  // spreads: queues being asked
	round         uint64               // spreads: the round that leftToReach is for
	leftToReach   int                  // spreads: ready queues that this round has not reached
	fullRound     uint64               // the last round in which it had no room
	onTheWay      int                  // messages on the way to it
	calls         int                  // calls under way for it
	callbacks     int                  // callbacks running or pending
	leaving       bool                 // nothing more is requested for it
	gone          bool                 // nothing more is delivered to it
	failReported  uint64               // the round of the last failure reported to it
	idle          chan struct{}        // closed when it is leaving and has no call under way
	began         uint64               // Standing: the last round before its turn
	askedQueues   int                  // Standing: queues known to have been asked since then
	leftOutRound  uint64               // Standing: the last round that had no room for one of its queues
	leftOutQueues int                  // Standing: ready queues that leftOutRound had no room for
	wakeWhenQuiet bool                 // Standing: to be woken when quiet
	late          bool                 // Standing: its wait is over
	turnEnded     time.Time            // Standing: when its last turn ended
	hasParked     bool                 // Standing: some of its queues are parked
	held          map[string]struct{}  // Standing: queues with more held back, not reported yet
	woken         chan struct{}        // Standing: holds a token when messages came, or it is quiet
}

// isLease reports whether it belongs to a Standing, and not to a worker.
func (s *Subscription) isLease() bool { return s.answer != nil }

// spreads reports whether it takes some messages of each queue rather than all of one. That
// costs a walk each time a queue is asked, so with a single queue it does not.
func (s *Subscription) spreads() bool { return len(s.Queues) > 1 }

// over reports whether nothing more may be leased for a subscription. Called with d.mu held.
func (d *Dispatcher) over(s *Subscription, now time.Time) bool {
	return s.leaving || s.isLease() && (s.ended() || !now.Before(s.until) && d.empty(s))
}

// ended reports whether the context of a lease has ended.
func (s *Subscription) ended() bool {
	select {
	case <-s.ends:
		return true
	default:
		return false
	}
}

// ready returns how many of its queues are ready to be asked.
func (s *Subscription) ready() int {
	switch {
	case s.onlyQueue == nil:
		return s.readyQueues
	case s.onlyQueue.ready:
		return 1
	}
	return 0
}

// inCalls returns how many of its queues are being asked, for it or for others.
func (s *Subscription) inCalls() int {
	switch {
	case s.onlyQueue == nil:
		return s.queuesInCalls
	case s.onlyQueue.busy:
		return 1
	}
	return 0
}

// empty reports whether a Standing has no messages though its queues have been asked.
func (d *Dispatcher) empty(s *Subscription) bool {
	return len(s.answer.Messages) == 0 && d.wasAsked(s)
}

// wasAsked reports whether each queue that a Standing without messages has room for was asked
// in its turn, or was known to have nothing. An answer that left more does not count for
// moreFor: its call may not have included the Standing. Called with d.mu held.
func (d *Dispatcher) wasAsked(s *Subscription) bool {
	for ; s.askedQueues < len(s.Queues); s.askedQueues++ {
		b := d.queues[s.Queues[s.askedQueues]]
		if (b.ready || b.busy) && (b.answered <= s.began || b.more && time.Since(s.until) < moreFor) && s.answer.leftOf(b.queue) > 0 {
			return false
		}
	}
	return true
}

// sameOptions reports whether w requests leases with the options of the subscription.
func (s *Subscription) sameOptions(w *engine.Want) bool {
	return s.TTR == w.TTR && s.Remote == w.Remote
}

// Leave ends a subscription. Nothing more is requested for it, but messages of calls under
// way are still delivered. Leave waits for these calls up to patience; messages that come
// later are released.
type Leave func(patience time.Duration)

// Subscribe adds the subscription of a worker, and returns the function that removes it.
func (d *Dispatcher) Subscribe(s *Subscription) Leave {
	s.Queues = sorted(s.Queues)
	waiter, engineWaits := d.eng.(engine.LeaseWaiter)
	if engineWaits = engineWaits && d.caps.LeaseWait; !engineWaits {
		d.watch()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		d.mu.Unlock()
		s.Fail(errClientClosed("lease"))
		d.mu.Lock()
		return func(time.Duration) {}
	case engineWaits:
		return d.poll(waiter, s)
	}
	d.enter(s)
	d.kick()
	return func(patience time.Duration) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stopRequests(context.Background(), patience, s)
		d.remove(s)
	}
}

// sorted returns the queues in order, without duplicates.
func sorted(queues []string) []string {
	queues = slices.Clone(queues)
	slices.Sort(queues)
	return slices.Compact(queues)
}

// watch subscribes to the engine's hints, once.
func (d *Dispatcher) watch() {
	d.watchOnce.Do(func() { d.stopWatch = d.eng.Watch(d.hint) })
}

// enter adds a subscription. Called with d.mu held.
func (d *Dispatcher) enter(s *Subscription) {
	s.seats = make([]link[Subscription], len(s.Queues))
	for i, q := range s.Queues {
		b := d.queues[q]
		if b == nil {
			b = newBelief(q)
			d.queues[q] = b
			d.ask(b)
		}
		d.unpark(b)
		s.hold(b)
		if b.held && !s.isLease() {
			s.Room.Held.Add(1)
		}
		if b.err != nil {
			s.failing++
		}
		s.seats[i].of = s
		b.seats.add(&s.seats[i])
		if s.spreads() {
			b.spread++
			if b.ready {
				s.readyQueues++
			}
			if b.busy {
				s.queuesInCalls++
			}
		}
	}
	if len(s.Queues) == 1 {
		s.onlyQueue = d.queues[s.Queues[0]]
	}
	d.subs[s] = struct{}{}
	if !d.running && !d.closed {
		d.running = true
		d.tasks.Go(d.run)
	}
}

// alwaysAllowed is how many queues a lease may always name, so that large leases do not shut
// out small ones. The number of small leases is bounded elsewhere, as by connections.
const alwaysAllowed = 16

// countNames counts the queues that a lease names, unless there are too many. Called with
// d.mu held.
func (d *Dispatcher) countNames(queues int) error {
	if queues > alwaysAllowed && d.namedQueues+queues > d.maxNamedQueues {
		return &engine.Error{Op: "lease", Err: engine.ErrLimit, Hint: fmt.Sprintf(
			"all that wait for messages would name %d queues; at most %d are allowed: wait for fewer queues, or allow more (Config.MaxWaitQueues)", d.namedQueues+queues, d.maxNamedQueues)}
	}
	d.namedQueues += queues
	return nil
}

func errClientClosed(op string) error {
	return &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the client was closed"}
}

// stopRequests stops requests for a subscription, and waits for its calls under way. Called
// with d.mu held, which it releases while it waits.
func (d *Dispatcher) stopRequests(ctx context.Context, patience time.Duration, s *Subscription) {
	s.leaving = true
	if s.calls > 0 {
		idle := make(chan struct{})
		s.idle = idle
		d.mu.Unlock()
		await(ctx, patience, idle)
		d.mu.Lock()
	}
	d.stopDeliveries(s)
}

// stopDeliveries stops deliveries to a subscription, and waits for its callbacks. Called with
// d.mu held, which it releases while it waits.
func (d *Dispatcher) stopDeliveries(s *Subscription) {
	for s.gone = true; s.callbacks > 0; {
		d.handed.Wait()
	}
}

// remove removes a subscription that rests. Called with d.mu held.
func (d *Dispatcher) remove(s *Subscription) {
	delete(d.subs, s)
	if s.isLease() {
		d.namedQueues -= len(s.Queues)
	}
	for i, q := range s.Queues {
		b := d.queues[q]
		b.seats.remove(&s.seats[i])
		if s.spreads() {
			b.spread--
		}
		d.forget(b)
	}
	if len(d.subs) == 0 {
		d.kick()
	}
}

// await waits for done to be closed, until ctx ends or patience is over (0: no limit), and
// reports whether it was closed.
func await(ctx context.Context, patience time.Duration, done <-chan struct{}) bool {
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// allFailing reports whether none of the subscription's queues can be asked. Called with
// d.mu held.
func (s *Subscription) allFailing() bool { return s.failing == len(s.Queues) }
