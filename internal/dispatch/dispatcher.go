// Package dispatch waits for messages on behalf of a whole process: waiting workers and
// leases subscribe, and one dispatcher asks the engine for all of them.
//
// A belief is what is known of a queue (belief.go). A Subscription is a waiting worker or
// lease (subscription.go). A round is one call of the engine (round.go). On an engine that
// can wait by itself there are no rounds: each subscription has a poller (poll.go).
package dispatch

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// Dispatcher asks the engine on behalf of all subscriptions of this process, so that a
// thousand waiting on a queue cost one call and not a thousand.
//
// For each queue with subscriptions it keeps a belief: either the queue should be asked, or
// nothing is due before a known time. An answer of the engine sets the belief. A hint, or
// the passing of that time, sets it back to "ask". A round (plan) puts the queues to ask
// into one call, for as many messages as their subscriptions have room for. The answer is
// distributed (conclude) in the order of subscription. So the cost of a round depends on
// the number of queues to ask, not on how many subscriptions wait. Between rounds the
// dispatcher sleeps until the earliest known time, a hint, or freed room. If hints
// of the engine may be lost, Capabilities.Recheck bounds that time. A step of the clock ends
// the sleep: see Nap.
//
// While a call takes long, calls for other queues are made beside it: a queue on which the
// engine is slow must not hold up the rest. A call that takes very long is cancelled, and
// its subscriptions get an error.
//
// The dispatcher runs no callbacks with its lock held: it collects them under the lock
// (handed) and makes them afterwards (tell). So callers may hold their own locks.
//
// Its goroutines live only while there are subscriptions or calls under way.
type Dispatcher struct {
	eng            engine.Engine
	caps           engine.Capabilities
	log            *slog.Logger
	maxNamedQueues int // how many queues all waiting leases together may name

	epoch      time.Time       // what moments count from
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc
	wake       chan struct{} // holds a token to look again
	wakeOnRoom atomic.Bool   // a queue waits for room, so Freed must wake the dispatcher
	tasks      sync.WaitGroup
	watchOnce  sync.Once
	stopWatch  func()

	mu          sync.Mutex
	subs        map[*Subscription]struct{}
	namedQueues int        // queues of waiting leases, counted once for each lease
	handed      *sync.Cond // broadcast when collected callbacks have been made
	failed      []handed   // failures for the dispatcher's goroutine to report
	queues      map[string]*belief
	ready       chain[belief] // to be asked, FIFO
	parked      chain[belief] // likewise, but all their subscriptions have rested for long
	timed       timed         // to be asked at a known time
	calls       []*call       // under way, oldest first
	spare       asked         // memory of a finished call, for reuse
	rounds      uint64
	next        moment          // when the next round may begin, by the engine's pace
	open        int             // subscriptions not known to be full in this round
	resting     int             // Standings without a turn
	waiting     []*Subscription // Standings to wake when they are quiet
	running     bool
	closed      bool

	now   time.Time // the engine's clock, at nowAt by ours; zero: unknown
	nowAt time.Time

	pollers map[*poller]struct{} // of workers, when the engine waits by itself
}

// New returns a Dispatcher for an engine. Its calls must return when their contexts end.
// All waiting leases together may name at most most queues.
func New(eng engine.Engine, caps engine.Capabilities, log *slog.Logger, most int) *Dispatcher {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Dispatcher{
		eng: eng, caps: caps, log: log, maxNamedQueues: most, epoch: time.Now(),
		ctx: ctx, cancel: cancel,
		wake:    make(chan struct{}, 1),
		subs:    make(map[*Subscription]struct{}),
		queues:  make(map[string]*belief),
		pollers: make(map[*poller]struct{}),
	}
	d.handed = sync.NewCond(&d.mu)
	return d
}

// Freed says that a subscription may have more room.
func (d *Dispatcher) Freed() {
	if d.wakeOnRoom.Load() {
		d.kick()
	}
	if d.caps.LeaseWait {
		d.mu.Lock()
		defer d.mu.Unlock()
		for p := range d.pollers {
			p.look()
		}
	}
}

// kick wakes the dispatcher.
func (d *Dispatcher) kick() {
	if len(d.wake) > 0 { // common under load, and cheaper than a send
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// hint is called by the engine when a queue may be due sooner than it said.
func (d *Dispatcher) hint(queue string) {
	d.mu.Lock()
	b := d.queues[queue]
	kick := b != nil && !b.busy
	if b != nil {
		d.ask(b)
	}
	d.mu.Unlock()
	if kick {
		d.kick()
	}
}

// run is the dispatcher's goroutine. It makes the calls itself. When a call takes long,
// another goroutine takes over run, and this one ends after its call.
func (d *Dispatcher) run() {
	n := ExactNap()
	defer n.Stop()
	r := &runner{d: d}
	r.ctx, r.cancel = context.WithCancel(d.ctx)
	defer r.cancel()
	r.timer = time.AfterFunc(time.Hour, r.replace)
	r.timer.Stop() // until there is a call
	defer r.timer.Stop()
	for {
		// Let handlers finish first, so that one call requests many messages instead of
		// each call one.
		runtime.Gosched()
		d.mu.Lock()
		if len(d.subs) == 0 || d.closed {
			d.running = false
			d.mu.Unlock()
			return
		}
		now := time.Now()
		c := d.plan(now)
		if c != nil {
			d.calls = append(d.calls, c)
			c.cancel, r.call = r.cancel, c
		}
		d.wakeQuiet()
		until := d.earliest(now)
		failed := d.failed
		d.failed = nil
		d.mu.Unlock()
		d.tell(failed)
		switch {
		case c != nil:
			if r.make(c) {
				return
			}
		case n.Sleep(d.wake, until):
			d.askAll()
		}
	}
}

// runner is what a goroutine in run needs so that another one can take over from it.
type runner struct {
	d      *Dispatcher
	timer  *time.Timer
	ctx    context.Context // for its calls
	cancel context.CancelFunc
	call   *call // guarded by Dispatcher.mu
}

// replaceAfter is how long a call may hold up the queues that are not in it.
const replaceAfter = 5 * time.Millisecond

// make makes a call, and reports whether another goroutine has taken over.
func (r *runner) make(c *call) (replaced bool) {
	d := r.d
	r.timer.Reset(replaceAfter)
	g, err := d.eng.Lease(r.ctx, c.wants)
	r.timer.Stop()
	d.conclude(c, g, err)
	if c.replaced { // decided before conclude
		d.kick()
	}
	return c.replaced
}

// replace starts another goroutine if the call is still under way.
func (r *runner) replace() {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := r.call; c != nil && !c.concluded && !c.replaced {
		c.replaced = true
		d.tasks.Go(d.run)
	}
}

// earliest returns when the dispatcher must wake next; zero: only when it is woken. Called
// with d.mu held.
func (d *Dispatcher) earliest(now time.Time) (t time.Time) {
	sooner := func(u time.Time) {
		if t.IsZero() || u.Before(t) {
			t = u
		}
	}
	if len(d.timed) > 0 {
		sooner(d.time(max(d.timed[0].wake, d.next)))
	}
	if d.ready.first != nil && d.next > d.moment(now) {
		sooner(d.time(d.next))
	}
	for _, c := range d.calls {
		switch {
		case !c.slow:
			sooner(c.began.Add(slowCall))
		case !c.ended:
			sooner(c.began.Add(leaseTimeout))
		}
	}
	return t
}

// askAll marks all queues to be asked, after a step of the clock.
func (d *Dispatcher) askAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.queues {
		d.ask(b)
	}
}

// closeGrace is how long Close waits for calls that it has cancelled.
const closeGrace = 5 * time.Second

// Close cancels the calls under way, waits for them up to closeGrace, and fails the
// subscriptions.
func (d *Dispatcher) Close() {
	d.mu.Lock()
	d.closed = true
	subs := make([]*Subscription, 0, len(d.subs))
	for s := range d.subs {
		subs = append(subs, s)
	}
	d.mu.Unlock()
	d.cancel()
	d.kick()
	duration.Returns(d.tasks.Wait, closeGrace)
	d.watchOnce.Do(func() {})
	if d.stopWatch != nil {
		d.stopWatch()
	}
	d.mu.Lock()
	var failed []handed
	for _, s := range subs {
		if !s.gone {
			d.fail(&failed, s, errClientClosed("lease"))
		}
	}
	d.mu.Unlock()
	d.tell(failed)
}

// GiveBack releases unused leases in the background.
func (d *Dispatcher) GiveBack(leases []engine.Lease) {
	if len(leases) == 0 {
		return
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.tasks.Go(func() { d.release(leases) })
	}
	d.mu.Unlock()
	if closed {
		d.release(leases)
	}
}

// releaseTimeout bounds a call that releases leases.
const releaseTimeout = 30 * time.Second

// release releases unused leases.
func (d *Dispatcher) release(leases []engine.Lease) {
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), releaseTimeout)
	defer cancel()
	if _, err := d.eng.Settle(ctx, engine.Releases(leases)); err != nil {
		d.log.Warn("unused leases could not be released; they will lapse", "count", len(leases), "error", err)
	}
}
