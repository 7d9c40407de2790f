package tarry

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// dispatcher is the one who asks the engine on behalf of all that wait in this
// process, so that a thousand waiting on a queue cost one call and not a thousand.
//
// For each queue that somebody waits on it keeps a belief: either the queue should
// be asked, or nothing is to be had before a known time. An answer of the engine
// sets the belief; a hint and the passing of that time turn it back to "ask". A
// round asks every such queue for as many messages as its subscribers have room
// for, in one call, and hands out what came in the order in which they subscribed.
// Between rounds it sleeps until the least of the known times, a hint, or freed
// room. Since hints may be lost and clocks may step, no sleep is trusted for long:
// see nap.
//
// Its goroutine lives only while somebody is subscribed.
type dispatcher struct {
	eng  engine.Engine
	caps engine.Capabilities
	log  *slog.Logger

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wake   chan struct{} // holds one token: look again
	tasks  sync.WaitGroup

	mu        sync.Mutex
	subs      []*subscription
	pollers   map[*poller]struct{} // where the engine waits by itself
	queues    map[string]*belief
	running   bool
	stopWatch func()
	closed    bool
}

// subscription is a standing demand for messages of some queues. Its functions
// must not block; they are called from the dispatcher's goroutine.
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
	// asked, if not nil, tells that all queues have been asked and nothing is there
	// before next.
	asked func(now, next time.Time)
	// noted, if not nil, tells of messages that ended before anybody got them.
	noted func(queue string, expired, died int)

	spread bool // it would rather have something of each queue than all of one
	nowait bool // it leaves once all its queues have been asked

	turn  int // the queue that is asked first, so that none starves the others
	taken int // on the way in this round
	gone  bool
}

// belief is what is known of a queue that somebody waits on.
type belief struct {
	users  int
	ask    bool
	hinted bool      // a hint came while the engine was being asked
	due    time.Time // local clock; zero: no time known
	next   time.Time // the same by the engine's clock
	until  time.Time // the belief is worth nothing after this; zero: no end
	fails  int
	now    time.Time // engine's clock when last asked
}

func newDispatcher(eng engine.Engine, caps engine.Capabilities, log *slog.Logger) *dispatcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &dispatcher{
		eng: eng, caps: caps, log: log,
		ctx: ctx, cancel: cancel,
		wake:    make(chan struct{}, 1),
		queues:  make(map[string]*belief),
		pollers: make(map[*poller]struct{}),
	}
}

// freed tells that a subscription may have more room.
func (d *dispatcher) freed() {
	d.kick()
	if d.caps.LeaseWait {
		d.mu.Lock()
		defer d.mu.Unlock()
		for p := range d.pollers {
			select {
			case p.freed <- struct{}{}:
			default:
			}
		}
	}
}

// kick makes the dispatcher look again.
func (d *dispatcher) kick() {
	if len(d.wake) > 0 { // mostly so under load, and cheaper to see than to try
		return
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// subscribe adds a demand. When unsubscribe has returned nothing more is delivered;
// leases on their way to it are released.
func (d *dispatcher) subscribe(s *subscription) (unsubscribe func()) {
	s.queues = slices.Clone(s.queues)
	slices.Sort(s.queues)
	s.queues = slices.Compact(s.queues)
	if len(s.queues) > 0 {
		s.turn = rand.IntN(len(s.queues)) // many short-lived ones must not all begin alike
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		s.gone = true
		s.fail(&Error{Op: "lease", Err: ErrClosed, Hint: "the client was closed"})
		return func() {}
	}
	if lw, ok := d.eng.(engine.LeaseWaiter); ok && d.caps.LeaseWait {
		return d.poll(lw, s)
	}
	if d.stopWatch == nil {
		d.stopWatch = d.eng.Watch(d.hint)
	}
	for _, q := range s.queues {
		b := d.queues[q]
		if b == nil {
			b = &belief{ask: true}
			d.queues[q] = b
		}
		b.users++
	}
	d.subs = append(d.subs, s)
	if !d.running {
		d.running = true
		d.tasks.Go(d.run)
	}
	d.kick()
	return func() { d.unsubscribe(s) }
}

func (d *dispatcher) unsubscribe(s *subscription) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.gone {
		return
	}
	s.gone = true
	d.subs = slices.DeleteFunc(d.subs, func(o *subscription) bool { return o == s })
	for _, q := range s.queues {
		if b := d.queues[q]; b != nil {
			if b.users--; b.users == 0 {
				delete(d.queues, q)
			}
		}
	}
	if len(d.subs) == 0 {
		d.kick()
	}
}

// hint is called by the engine: the queue may be due sooner than it said.
func (d *dispatcher) hint(queue string) {
	d.mu.Lock()
	b := d.queues[queue]
	if b != nil {
		b.ask, b.hinted = true, true
	}
	d.mu.Unlock()
	if b != nil {
		d.kick()
	}
}

func (d *dispatcher) run() {
	n := newNap()
	defer n.stop()
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
		r := d.plan(time.Now())
		d.mu.Unlock()
		if len(r.wants) > 0 {
			grant, err := d.eng.Lease(d.ctx, r.wants)
			d.conclude(r, grant, err)
			continue
		}
		if n.sleep(d.wake, r.until) {
			d.askAll()
		}
	}
}

// askAll makes all beliefs void, since the clock they were measured by has stepped.
func (d *dispatcher) askAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.queues {
		b.ask = true
	}
}

// close ends all waiting, waits for what is under way and fails the subscribers.
func (d *dispatcher) close() {
	d.mu.Lock()
	d.closed = true
	subs := slices.Clone(d.subs)
	for p := range d.pollers {
		subs = append(subs, p.s)
	}
	stopWatch := d.stopWatch
	d.mu.Unlock()
	d.cancel()
	d.kick()
	d.tasks.Wait()
	if stopWatch != nil {
		stopWatch()
	}
	for _, s := range subs {
		s.fail(&Error{Op: "lease", Err: ErrClosed, Hint: "the client was closed"})
	}
}

// release gives leases back that nobody can start.
func (d *dispatcher) release(leases []engine.Lease) {
	if len(leases) == 0 {
		return
	}
	back := make([]engine.Settlement, len(leases))
	for i, l := range leases {
		back[i] = engine.Settlement{Token: l.Token, Do: engine.Release}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), coalesceTimeout)
	defer cancel()
	if _, err := d.eng.Settle(ctx, back); err != nil {
		d.log.Warn("leases that nobody waited for could not be released; they will lapse", "count", len(leases), "error", err)
	}
}
