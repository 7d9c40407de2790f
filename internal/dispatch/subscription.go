package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Subscription is a demand for messages of some queues: that of a worker, which has
// functions, or of a lease, which has an answer. The functions are called without a lock
// of the dispatcher, by several goroutines at a time, and never after the subscription
// has left.
type Subscription struct {
	Queues []string
	TTR    time.Duration
	Remote bool
	Spread bool // it would rather have something of each queue than all of one

	Room *Room
	// Deliver hands over leases, of one queue or several, never more than there was room for:
	// now is the engine's clock when it answered, sent ours before it was asked.
	Deliver func(leases []engine.Lease, now, sent time.Time)
	// Fail tells that the engine could not be asked. The dispatcher tries again.
	Fail func(err error)
	// Noted tells of messages that ended before anybody got them.
	Noted func(queue string, expired, died int)

	// A lease fails only when none of its queues can be asked. Nothing is leased for it
	// once its context has ended, nor, when its queues have all been asked, after the end
	// of its wait.
	answer *answer         // nil: it is a worker's
	ends   <-chan struct{} // closed when the context ends
	until  time.Time
	asked  chan struct{} // closed when all queues have been asked since it came; nil: it stands

	// Guarded by Dispatcher.mu.
	seats   []link[Subscription] // in the beliefs in its queues
	seen    int                  // lease: how many of its queues have been asked
	failing int                  // how many of its queues could not be asked the last time
	asks    int                  // spread: how many of its queues are ready
	busy    int                  // spread: how many of its queues are being asked
	round   uint64               // spread: the round that left is for
	left    int                  // spread: how many of its ready queues the round has still to come to
	full    uint64               // the last round in which it had no room for any queue
	taken   int                  // messages on the way to it
	calls   int                  // calls under way for it
	handing int                  // calls of its functions under way, or about to begin
	leaving bool                 // nothing more is asked for
	gone    bool                 // nothing more is delivered
	told    uint64               // the round of the last call whose failure it was told
	idle    chan struct{}        // closed when it is leaving and no call is under way for it
	stands  bool                 // it is a Standing's
	turn    int                  // stands: how many turns it has had
	looked  uint64               // stands: the last round that came to one of its queues
	out     int                  // stands: how many of its ready queues that round found it has no room for
	awaits  bool                 // stands: it is to be told when it is quiet
	rested  time.Time            // stands: when the end of its last turn began
	parks   bool                 // stands: rounds pass by some of its queues
	held    map[string]struct{}  // stands: queues of which more is held back, which was not told yet
	look    chan struct{}        // stands: has a token when something came, or it is quiet
}

// once reports whether it leaves with one answer.
func (s *Subscription) once() bool { return s.answer != nil }

// Outlook is what is known of a subscription's queues when it leaves.
type Outlook struct {
	Now  time.Time // the engine's clock
	Next time.Time // when something may be there; zero: unknown
	Err  error     // why a queue could not be asked
}

// over reports whether nothing is to be leased for it any more.
func (s *Subscription) over(now time.Time) bool {
	return s.leaving || s.once() && (s.ended() || s.wasAsked() && !now.Before(s.until))
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

// wasAsked reports whether all queues of a lease have been asked.
func (s *Subscription) wasAsked() bool {
	if s.stands {
		return s.asks <= s.out
	}
	return s.seen == len(s.Queues)
}

// takes reports whether leases asked for by w are such as it wants.
func (s *Subscription) takes(w *engine.Want) bool { return s.TTR == w.TTR && s.Remote == w.Remote }

// Leave ends a subscription.
type Leave func(ctx context.Context, patience time.Duration) Outlook

// Subscribe adds a demand. The function returned takes it away again: nothing more
// is asked for it, what a call under way brings it is still delivered, and when it
// returns nothing is on the way to it any more. When ctx ends before that, or patience
// is over (0: it has no end), what comes later is given back.
func (d *Dispatcher) Subscribe(s *Subscription) Leave {
	s.sort()
	s.Spread = s.Spread && len(s.Queues) > 1 // those that do are walked over each time a queue is asked
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
	if s.once() && !d.seen(s) {
		d.fresh = append(d.fresh, s)
	}
	d.kick()
	return func(ctx context.Context, patience time.Duration) Outlook { return d.leave(ctx, patience, s) }
}

// sort has a subscription name each queue once, in order.
func (s *Subscription) sort() { s.Queues = sorted(s.Queues) }

func sorted(queues []string) []string {
	queues = slices.Clone(queues)
	slices.Sort(queues)
	return slices.Compact(queues)
}

// watch has the engine's hints come in.
func (d *Dispatcher) watch() {
	d.watchOnce.Do(func() { d.stopWatch = d.eng.Watch(d.hint) })
}

// enter takes in a subscription. Called with d.mu held.
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
			if s.once() && s.until.IsZero() {
				d.ask(b) // it cannot wait for the next try
			}
		}
		s.seats[i].of = s
		b.seats.add(&s.seats[i])
		if s.Spread {
			b.spread++
			if b.ready {
				s.asks++
			}
			if b.busy {
				s.busy++
			}
		}
	}
	d.subs[s] = struct{}{}
	if !d.running && !d.closed {
		d.running = true
		d.tasks.Go(d.run)
	}
}

// fewQueues is how many queues a wait may always name, so that large ones do not shut small ones out: what holds
// them, such as connections, is bounded already.
const fewQueues = 16

// admit notes the queues that a lease waits on, unless the client is closed or they are
// too many. Called with d.mu held.
func (d *Dispatcher) admit(s *Subscription) error {
	switch {
	case d.closed:
		return errClientClosed("lease")
	case !s.once():
	case len(s.Queues) > fewQueues && d.named+len(s.Queues) > d.most:
		return &engine.Error{Op: "lease", Err: engine.ErrLimit, Hint: fmt.Sprintf(
			"all that wait for messages would name %d queues; at most %d are allowed: wait for fewer queues, or allow more (Config.MaxWaitQueues)", d.named+len(s.Queues), d.most)}
	default:
		d.named += len(s.Queues)
	}
	return nil
}

// dismiss notes that a subscription waits on its queues no more. Called with d.mu held.
func (d *Dispatcher) dismiss(s *Subscription) {
	delete(d.subs, s)
	if s.once() {
		d.named -= len(s.Queues)
	}
}

// refuse fails a subscription that was not admitted. It is called with d.mu held, which
// it lets go of meanwhile.
func (d *Dispatcher) refuse(s *Subscription, err error) Leave {
	s.gone = true
	if s.once() {
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
	if s.asked != nil && s.seen < len(s.Queues) {
		d.fresh = slices.DeleteFunc(d.fresh, func(o *Subscription) bool { return o == s })
	}
	o := d.outlook(s)
	d.remove(s)
	return o
}

// rest has nothing more asked for a subscription, and when it returns nothing is on the
// way to it any more. Called with d.mu held, which it lets go of while it waits.
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

// depart has nothing more delivered to a subscription, once what is being delivered has
// been. Called with d.mu held, which it lets go of while it waits.
func (d *Dispatcher) depart(s *Subscription) {
	for s.gone = true; s.handing > 0; {
		d.handed.Wait()
	}
}

// outlook is what is known of a subscription's queues. Called with d.mu held.
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

// remove takes out a subscription that rests. Called with d.mu held.
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

// seen reports whether all queues of a new subscription have been asked since it came.
// Called with d.mu held.
func (d *Dispatcher) seen(s *Subscription) bool {
	for s.seen < len(s.Queues) {
		if b := d.queues[s.Queues[s.seen]]; b.ready || b.busy {
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
func (s *Subscription) hopeless() bool { return s.failing == len(s.Queues) }
