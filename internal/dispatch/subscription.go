package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Subscription asks for messages of some queues. It belongs to a worker, which has
// callbacks, or to a lease, which has an answer. The callbacks run without a lock of the
// dispatcher, concurrently, and never after the subscription has left.
type Subscription struct {
	Queues []string
	TTR    time.Duration
	Remote bool
	Spread bool // prefer some messages of each queue to all of one

	Room *Room
	// Deliver gets leases of one or several queues, never more than there was room for. now
	// is the engine's clock at its answer; sent is our clock before the call.
	Deliver func(leases []engine.Lease, now, sent time.Time)
	// Fail gets the error when the engine could not be asked. The dispatcher tries again.
	Fail func(err error)
	// Noted gets how many messages ended without being leased.
	Noted func(queue string, expired, died int)

	// A lease fails only when none of its queues can be asked. Nothing is leased for it
	// once its context has ended, or once its wait is over and all its queues were asked.
	answer *answer         // nil: of a worker
	ends   <-chan struct{} // closed when the context ends
	until  time.Time
	asked  chan struct{} // closed when all queues have been asked since it came; nil: a Standing

	// Guarded by Dispatcher.mu.
	seats         []link[Subscription] // its places in the beliefs of its queues
	askedQueues   int                  // lease: queues asked so far
	failing       int                  // queues that could not be asked the last time
	readyQueues   int                  // Spread: ready queues
	queuesInCalls int                  // Spread: queues being asked
	round         uint64               // Spread: the round that left is about
	left          int                  // Spread: ready queues that this round has not reached
	full          uint64               // the last round in which it had no room
	taken         int                  // messages on the way to it
	calls         int                  // calls under way for it
	handing       int                  // callbacks running or pending
	leaving       bool                 // nothing more is requested for it
	gone          bool                 // nothing more is delivered to it
	told          uint64               // the round of the last failure reported to it
	idle          chan struct{}        // closed when it is leaving and has no call under way
	stands        bool                 // it is a Standing
	leftOutRound  uint64               // Standing: the last round that had no room for one of its queues
	leftOutQueues int                  // Standing: ready queues that leftOutRound had no room for
	awaits        bool                 // Standing: to be woken when quiet
	rested        time.Time            // Standing: when its last turn ended
	parks         bool                 // Standing: some of its queues are parked
	held          map[string]struct{}  // Standing: queues with more held back, not reported yet
	look          chan struct{}        // Standing: holds a token when messages came, or it is quiet
}

// isLease reports whether it is for a lease, or a Standing, and not for a worker.
func (s *Subscription) isLease() bool { return s.answer != nil }

// Outlook is what is known of a subscription's queues when it leaves.
type Outlook struct {
	Now  time.Time // the engine's clock
	Next time.Time // when a message may be due; zero: unknown
	Err  error     // why a queue could not be asked
}

// over reports whether nothing more may be leased for it.
func (s *Subscription) over(now time.Time) bool {
	return s.leaving || s.isLease() && (s.ended() || s.wasAsked() && !now.Before(s.until))
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

// wasAsked reports whether all queues of a lease have been asked. For a Standing, queues
// that there is no room for count as asked.
func (s *Subscription) wasAsked() bool {
	if s.stands {
		return s.readyQueues <= s.leftOutQueues
	}
	return s.askedQueues == len(s.Queues)
}

// takes reports whether w requests leases with the subscription's options.
func (s *Subscription) takes(w *engine.Want) bool { return s.TTR == w.TTR && s.Remote == w.Remote }

// Leave ends a subscription.
type Leave func(ctx context.Context, patience time.Duration) Outlook

// Subscribe adds a subscription, and returns the function that removes it. After that
// nothing more is requested for it, but messages of calls under way are still delivered.
// The function waits for these calls until ctx ends or patience is over (0: no limit);
// messages that come later are released.
func (d *Dispatcher) Subscribe(s *Subscription) Leave {
	s.sort()
	s.Spread = s.Spread && len(s.Queues) > 1 // Spread costs a walk each time a queue is asked
	if lw, ok := d.eng.(engine.LeaseWaiter); ok && d.caps.LeaseWait {
		return d.poll(lw, s)
	}
	d.watch()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admit(s); err != nil {
		return d.refuse(s, err)
	}
	d.enter(s)
	if s.isLease() && !d.allAsked(s) {
		d.notAsked = append(d.notAsked, s)
	}
	d.kick()
	return func(ctx context.Context, patience time.Duration) Outlook { return d.leave(ctx, patience, s) }
}

// sort sorts the queues and removes duplicates.
func (s *Subscription) sort() { s.Queues = sorted(s.Queues) }

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
		if b.err != nil {
			s.failing++
			if s.isLease() && s.until.IsZero() {
				d.ask(b) // it cannot wait for the next attempt
			}
		}
		s.seats[i].of = s
		b.seats.add(&s.seats[i])
		if s.Spread {
			b.spread++
			if b.ready {
				s.readyQueues++
			}
			if b.busy {
				s.queuesInCalls++
			}
		}
	}
	d.subs[s] = struct{}{}
	if !d.running && !d.closed {
		d.running = true
		d.tasks.Go(d.run)
	}
}

// fewQueues is how many queues a lease may always name, so that large leases do not shut out
// small ones. The number of small leases is bounded elsewhere, for example by connections.
const fewQueues = 16

// admit counts the queues of a lease, unless the client is closed or there are too many.
// Called with d.mu held.
func (d *Dispatcher) admit(s *Subscription) error {
	switch {
	case d.closed:
		return errClientClosed("lease")
	case !s.isLease():
	case len(s.Queues) > fewQueues && d.named+len(s.Queues) > d.most:
		return &engine.Error{Op: "lease", Err: engine.ErrLimit, Hint: fmt.Sprintf(
			"all that wait for messages would name %d queues; at most %d are allowed: wait for fewer queues, or allow more (Config.MaxWaitQueues)", d.named+len(s.Queues), d.most)}
	default:
		d.named += len(s.Queues)
	}
	return nil
}

// dismiss undoes admit, and removes the subscription from subs. Called with d.mu held.
func (d *Dispatcher) dismiss(s *Subscription) {
	delete(d.subs, s)
	if s.isLease() {
		d.named -= len(s.Queues)
	}
}

// refuse fails a subscription that was not admitted. Called with d.mu held, which it
// releases while it calls Fail.
func (d *Dispatcher) refuse(s *Subscription, err error) Leave {
	s.gone = true
	if s.isLease() {
		s.answer.fail(err)
	} else {
		d.mu.Unlock()
		s.Fail(err)
		d.mu.Lock()
	}
	return func(context.Context, time.Duration) Outlook { return Outlook{} }
}

func errClientClosed(op string) error {
	return &engine.Error{Op: op, Err: engine.ErrClosed, Hint: "the client was closed"}
}

func (d *Dispatcher) leave(ctx context.Context, patience time.Duration, s *Subscription) Outlook {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rest(ctx, patience, s)
	if s.asked != nil && s.askedQueues < len(s.Queues) {
		d.notAsked = slices.DeleteFunc(d.notAsked, func(o *Subscription) bool { return o == s })
	}
	o := d.outlook(s)
	d.remove(s)
	return o
}

// rest stops requests for a subscription, and waits for its calls under way. Called with
// d.mu held, which it releases while it waits.
func (d *Dispatcher) rest(ctx context.Context, patience time.Duration, s *Subscription) {
	s.leaving = true
	if s.calls > 0 {
		idle := make(chan struct{})
		s.idle = idle
		d.mu.Unlock()
		await(ctx, patience, idle)
		d.mu.Lock()
	}
	d.depart(s)
}

// depart stops deliveries to a subscription, and waits for its callbacks. Called with d.mu
// held, which it releases while it waits.
func (d *Dispatcher) depart(s *Subscription) {
	for s.gone = true; s.handing > 0; {
		d.handed.Wait()
	}
}

// outlook returns what is known of a subscription's queues. Called with d.mu held.
func (d *Dispatcher) outlook(s *Subscription) (o Outlook) {
	nextMS := none
	for _, q := range s.Queues {
		b := d.queues[q]
		if b.next != none && (nextMS == none || b.next < nextMS) {
			nextMS = b.next
		}
		if o.Err == nil {
			o.Err = b.err
		}
	}
	o.Next = instant(nextMS)
	if !d.now.IsZero() {
		o.Now = instant(d.now.Add(time.Since(d.nowAt)).UnixMilli())
	}
	return o
}

// remove removes a subscription that rests. Called with d.mu held.
func (d *Dispatcher) remove(s *Subscription) {
	d.dismiss(s)
	for i, q := range s.Queues {
		b := d.queues[q]
		b.seats.remove(&s.seats[i])
		if s.Spread {
			b.spread--
		}
		d.forget(b)
	}
	if len(d.subs) == 0 {
		d.kick()
	}
}

// allAsked reports whether all queues of a new subscription have been asked since it came.
// Called with d.mu held.
func (d *Dispatcher) allAsked(s *Subscription) bool {
	for s.askedQueues < len(s.Queues) {
		if b := d.queues[s.Queues[s.askedQueues]]; b.ready || b.busy {
			return false
		}
		s.askedQueues++
	}
	close(s.asked)
	return true
}

// await waits for done to be closed, until ctx ends or patience is over (0: no limit), and
// reports whether it was closed.
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
func (s *Subscription) hopeless() bool { return s.failing == len(s.Queues) }
