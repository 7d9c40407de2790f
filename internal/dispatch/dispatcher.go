// Package dispatch is the waiting of a process: whoever waits for messages of some
// queues subscribes, and one dispatcher asks the engine for all of them.
//
// A queue of which something is known is a belief (belief.go), whoever waits a
// Subscription (subscription.go), one call of the engine a round (round.go). On an
// engine whose other side can wait there are no rounds: each subscription has its
// poller (poll.go).
package dispatch

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/nap"
)

// Dispatcher is the one who asks the engine on behalf of all that wait in this
// process, so that a thousand waiting on a queue cost one call and not a thousand.
//
// For each queue that somebody waits on it keeps a belief: either the queue should
// be asked, or nothing is to be had before a known time. An answer of the engine
// sets the belief; a hint and the passing of that time turn it back to "ask". A
// round (plan) takes queues that are to be asked, for as many messages as their
// subscribers have room for, into one call; the answer is handed out (conclude) in
// the order in which they subscribed. So a round costs what is to be asked, not what
// waits. Between rounds it sleeps until the least of the known times, a hint, or
// freed room. Since hints may be lost and clocks may step, no sleep is trusted for
// long: see nap.
//
// While a call takes long others are made, each for other queues, so that a queue on
// which the engine is slow does not hold up the rest. A call that takes very long is
// ended by its context, and its subscribers are told.
//
// It calls nothing of others with its lock held: what they are to know is gathered under
// it (handed) and told afterwards (tell). So their locks may be held when they call it.
//
// Its goroutines live only while somebody is subscribed, or a call is under way.
type Dispatcher struct {
	eng  engine.Engine
	caps engine.Capabilities
	log  *slog.Logger
	most int // queues that all leases that wait may name together

	epoch     time.Time       // what moments count from
	ctx       context.Context // ends with close
	cancel    context.CancelFunc
	wake      chan struct{} // holds one token: look again
	short     atomic.Bool   // a queue is to be asked as soon as there is room
	tasks     sync.WaitGroup
	watchOnce sync.Once
	stopWatch func()

	mu      sync.Mutex
	subs    map[*Subscription]struct{}
	named   int             // queues that leases wait on, each counted as often as it is named
	handed  *sync.Cond      // broadcast when what was gathered for others has been told
	failed  []handed        // to be told by the goroutine that runs
	fresh   []*Subscription // of one answer, not all of whose queues have been asked yet
	queues  map[string]*belief
	ready   chain[belief] // to be asked, first come first served
	parked  chain[belief] // likewise, but all who wait on them have rested for long
	timed   timed         // beliefs of which a time is known
	calls   []*call       // under way, the oldest first
	spare   asked         // empty: the memory of a call that is over
	rounds  uint64
	open    int             // subscriptions that are not known to be full in this round
	resting int             // standing ones that have no turn
	waiting []*Subscription // standing ones that are to be told when they are quiet
	running bool
	closed  bool

	now   time.Time // the engine's clock, at nowAt by ours; zero: unknown
	nowAt time.Time

	pollers map[*poller]struct{} // of workers, where the engine waits by itself
}

// New returns a Dispatcher of an engine, whose calls must return when their contexts
// end. Leases that wait at the same time may name most queues together.
func New(eng engine.Engine, caps engine.Capabilities, log *slog.Logger, most int) *Dispatcher {
	ctx, cancel := context.WithCancel(context.Background())
	d := &Dispatcher{
		eng: eng, caps: caps, log: log, most: most, epoch: time.Now(),
		ctx: ctx, cancel: cancel,
		wake:    make(chan struct{}, 1),
		subs:    make(map[*Subscription]struct{}),
		queues:  make(map[string]*belief),
		pollers: make(map[*poller]struct{}),
	}
	d.handed = sync.NewCond(&d.mu)
	return d
}

// Freed tells that a subscription may have more room.
func (d *Dispatcher) Freed() {
	if d.short.Load() {
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

// kick makes the dispatcher look again.
func (d *Dispatcher) kick() {
	if len(d.wake) > 0 { // mostly so under load, and cheaper to see than to try
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// hint is called by the engine: the queue may be due sooner than it said.
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

// run is the dispatcher's goroutine. It makes the calls itself; when one takes long,
// another goroutine takes its place meanwhile, and it ends with the call.
func (d *Dispatcher) run() {
	n := nap.Exact()
	defer n.Stop()
	r := &runner{d: d}
	r.ctx, r.cancel = context.WithCancel(d.ctx)
	defer r.cancel()
	r.timer = time.AfterFunc(time.Hour, r.replace)
	r.timer.Stop() // until there is a call
	defer r.timer.Stop()
	for {
		// Handlers that can finish now should, so that one call asks for many messages
		// and not each call for one.
		runtime.Gosched()
		d.mu.Lock()
		if len(d.subs) == 0 || d.closed {
			d.running = false
			d.mu.Unlock()
			return
		}
		c := d.plan(time.Now())
		if c != nil {
			d.calls = append(d.calls, c)
			c.cancel, r.call = r.cancel, c
		}
		d.hush()
		until := d.earliest()
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

// runner is what a goroutine that runs the dispatcher needs to be replaced.
type runner struct {
	d      *Dispatcher
	timer  *time.Timer
	ctx    context.Context // of its calls
	cancel context.CancelFunc
	call   *call // guarded by Dispatcher.mu
}

// replaceAfter is how long a call holds up the queues that are not in it.
const replaceAfter = 5 * time.Millisecond

// make makes a call, and reports whether somebody else runs the dispatcher by now.
func (r *runner) make(c *call) (replaced bool) {
	d := r.d
	r.timer.Reset(replaceAfter)
	g, err := d.eng.Lease(r.ctx, c.wants)
	r.timer.Stop()
	d.conclude(c, g, err)
	if c.replaced { // that was decided before conclude
		d.kick()
	}
	return c.replaced
}

// replace has another goroutine run the dispatcher when the call is still under way.
func (r *runner) replace() {
	d := r.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := r.call; c != nil && !c.concluded && !c.replaced {
		c.replaced = true
		d.tasks.Go(d.run)
	}
}

// earliest returns when there is something to do by itself; zero: no time is known.
// Called with d.mu held.
func (d *Dispatcher) earliest() (t time.Time) {
	sooner := func(u time.Time) {
		if t.IsZero() || u.Before(t) {
			t = u
		}
	}
	if len(d.timed) > 0 {
		sooner(d.time(d.timed[0].wake))
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

// askAll makes all beliefs void, since the clock they were measured by has stepped.
func (d *Dispatcher) askAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.queues {
		d.ask(b)
	}
}

// closeGrace is how long close waits for calls under way, whose context it ends.
const closeGrace = 5 * time.Second

// Close ends all waiting, waits for what is under way, at most closeGrace, and fails
// the subscribers.
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
	waitFor(&d.tasks, closeGrace)
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

// waitFor waits for tasks, and reports whether they have ended before the time given
// was over.
func waitFor(tasks *sync.WaitGroup, d time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		tasks.Wait()
		close(ended)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// GiveBack releases leases that nobody gets, in the background.
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

// release gives leases back that nobody can start.
func (d *Dispatcher) release(leases []engine.Lease) {
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), releaseTimeout)
	defer cancel()
	if _, err := d.eng.Settle(ctx, engine.Releases(leases)); err != nil {
		d.log.Warn("leases that nobody waited for could not be released; they will lapse", "count", len(leases), "error", err)
	}
}
