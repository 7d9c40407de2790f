package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
)

// The defaults of a RouterConfig.
const (
	DefaultListEvery = 5 * time.Second
	DefaultMaxQueues = 100_000
)

// RouterConfig configures a Router. The zero value and nil are valid.
type RouterConfig struct {
	// DrainTimeout is how long the Sends of an ending route may take. After that they are
	// cancelled, and their messages are released without counting an attempt. Default 30 s;
	// negative: at once.
	DrainTimeout time.Duration

	// ListEvery is how often the engine's queues are listed, to find those that match a
	// pattern but that no hint reported. Slow lists are made less often, so that they take at
	// most a fiftieth of the time. Default 5 s.
	ListEvery time.Duration

	// MaxQueues bounds how many queues the patterns of a route take at a time. Further queues
	// wait until others have been empty for a minute, and the log says so. Default 100,000;
	// over HTTP at most 10,000.
	MaxQueues int

	// Middleware wraps the Send of each message, the first outermost. It runs while the
	// message holds a slot. Default: none.
	Middleware []tarry.Middleware

	// Logger gets failures to forward: for each route the first at once, then one line a
	// minute with their number. Nothing waits for it. Default: slog.Default().
	Logger *slog.Logger
}

// Router sends due messages to the targets of its routes. Each route has its own worker,
// slots and target, so a slow target delays no other route. Make a Router with NewRouter,
// give it routes with Set, and call Run.
//
// It is safe for concurrent use.
type Router struct {
	c   *tarry.Client
	cfg RouterConfig

	mu      sync.Mutex
	ran     bool
	ended   bool
	routes  Routes           // as set, with their defaults filled in
	lanes   map[string]*lane // by Route.Queue
	changed chan struct{}    // holds a token when the routes were set

	// Used only by Run's goroutine.
	finder     *finder
	nextAssign time.Time // the earliest time to assign found queues again
	failures   chan error
	lists      chan list
	looking    sync.WaitGroup // makes lists
	trouble    *notify.TroubleLog
	closing    sync.WaitGroup
}

var (
	tooManyQueues = notify.Trouble{Text: "patterns match more queues than may be taken at a time", Level: slog.LevelWarn}
	cannotList    = notify.Trouble{Text: "queues cannot be listed; new ones may be found late", Level: slog.LevelWarn}
)

// NewRouter returns a Router for the messages of a client.
func NewRouter(c *tarry.Client, cfg *RouterConfig) *Router {
	r := &Router{c: c, lanes: make(map[string]*lane), changed: make(chan struct{}, 1), finder: newFinder(), failures: make(chan error, 1), lists: make(chan list)}
	r.cfg = *cmp.Or(cfg, new(RouterConfig))
	r.cfg.ListEvery = cmp.Or(max(r.cfg.ListEvery, 0), DefaultListEvery)
	r.cfg.MaxQueues = cmp.Or(max(r.cfg.MaxQueues, 0), DefaultMaxQueues)
	if c.Capabilities().LeaseWait {
		r.cfg.MaxQueues = min(r.cfg.MaxQueues, tarry.MaxBatch)
	}
	r.cfg.Logger = notify.Logger(cmp.Or(r.cfg.Logger, slog.Default()))
	r.trouble = notify.NewTroubleLog(r.cfg.Logger)
	return r
}

// Set replaces all routes. It opens targets without connecting. An error names the route, and
// then nothing has changed.
//
// Set may be called during Run. Unchanged routes continue undisturbed. Changed ones start
// again at once, while the Sends of the old ones finish. Removed ones drain. Set fails with
// ErrUnsupported for a pattern if the engine cannot list its queues, and with ErrClosed
// after Run has ended.
func (r *Router) Set(routes Routes) error {
	full, err := routes.Complete()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errClosed
	}
	caps := r.c.Capabilities()
	lanes := make(map[string]*lane, len(full))
	for i, route := range full {
		if route.pattern() && !caps.Count {
			err = routes.wrong(i, &tarry.Error{Op: "route", Err: tarry.ErrUnsupported,
				Hint: fmt.Sprintf("the engine %s cannot list its queues; give each queue a route by its name", caps.Name)})
			break
		}
		l := r.lanes[route.Queue]
		if l == nil || !l.route.same(route) {
			if l, err = newLane(r.c, route, &r.cfg); err != nil {
				err = routes.wrong(i, err)
				break
			}
		}
		lanes[route.Queue] = l
	}
	stale := r.lanes
	if err != nil {
		stale, lanes = lanes, r.lanes
	}
	for queue, l := range stale {
		if lanes[queue] != l {
			r.closing.Go(func() { r.dropLane(l) })
		}
	}
	if err != nil {
		return err
	}
	r.routes, r.lanes = full, lanes
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

// dropLane ends the lane of a removed route.
func (r *Router) dropLane(l *lane) {
	if err := l.close(); err != nil {
		r.cfg.Logger.Warn("a route ended with an error", "error", err)
	}
}

// Run forwards messages until ctx ends, then drains: it leases no more, lets Sends finish
// within DrainTimeout, releases messages that wait for their rate, and closes the targets.
// It returns nil after a clean end, and tarry.ErrClosed if the client was closed. End Run
// before you close the client, which does not know DrainTimeout. A target that ignores
// context and timeout, or does not close, is abandoned 5 s later. A router runs once.
func (r *Router) Run(ctx context.Context) error {
	r.mu.Lock()
	ran := r.ran
	r.ran = true
	r.mu.Unlock()
	if ran {
		return &tarry.Error{Op: "route", Err: tarry.ErrInvalid, Hint: "a router runs once; make a new one"}
	}
	err := r.coordinate(ctx)

	r.mu.Lock()
	r.ended = true
	lanes := r.lanes
	r.mu.Unlock()
	errs := make(chan error, len(lanes))
	for _, l := range lanes {
		r.closing.Go(func() { errs <- l.close() })
	}
	r.closing.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	r.trouble.Flush()
	notify.FlushLog(r.cfg.Logger)
	return err
}

// coordinate makes each lane work on its queues until ctx ends or the client is closed.
func (r *Router) coordinate(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := func() {}
	defer func() {
		cancel()
		stop()
		r.looking.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.failures:
			return err
		case <-r.changed:
			stop()
			stop = func() {}
			if r.takeRoutes() {
				stop = r.look(ctx)
			}
		case <-r.finder.kick:
			duration.Sleep(ctx, time.Until(r.nextAssign))
			r.finder.gather()
		case l := <-r.lists:
			r.finder.take(l)
		}
		r.assign()
	}
}

// listShare bounds the cost of lists: the pause before the next one is at least this many
// times as long as the last one took.
const listShare = 50

// look looks for queues that match patterns, by the engine's hints and by lists, until stop is
// called.
func (r *Router) look(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	unwatch := r.c.Engine().Watch(r.finder.hint)
	r.looking.Go(func() {
		for ctx.Err() == nil {
			l, err := r.finder.list(ctx, r.c)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				r.trouble.Note(cannotList, "", "error", err)
			default:
				select {
				case r.lists <- l:
				case <-ctx.Done():
				}
			}
			duration.Sleep(ctx, max(r.cfg.ListEvery, listShare*time.Since(l.began)))
		}
	})
	return func() {
		cancel()
		unwatch()
	}
}

// takeRoutes passes the routes to the finder, and reports whether one has a pattern.
func (r *Router) takeRoutes() (patterns bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finder.heed(r.routes)
	return slices.ContainsFunc(r.routes, func(r Route) bool { return r.pattern() })
}

// The pause between two assigns grows with the number of queues, since each new worker starts
// with all of its queues.
const (
	minAssignPause      = 20 * time.Millisecond
	assignPausePerQueue = 20 * time.Microsecond // per queue
)

// assign starts a new worker for each lane with changed queues.
func (r *Router) assign() {
	r.mu.Lock()
	defer r.mu.Unlock()
	sets := make(map[*lane]map[string]struct{}, len(r.lanes))
	for _, l := range r.lanes {
		sets[l] = make(map[string]struct{})
		if !l.route.pattern() {
			sets[l][l.route.Queue] = struct{}{}
		}
	}
	waiting := 0
	for _, hadWorker := range []bool{true, false} { // queues with a worker come first
		for q := range r.finder.queues {
			i := r.routes.Index(q)
			if i < 0 {
				continue // the routes have changed again
			}
			l := r.lanes[r.routes[i].Queue]
			if _, is := l.queues[q]; is != hadWorker {
				continue
			}
			if len(sets[l]) == r.cfg.MaxQueues {
				waiting++
				continue
			}
			sets[l][q] = struct{}{}
		}
	}
	if waiting > 0 {
		r.trouble.Note(tooManyQueues, "", "waiting", waiting, "most", r.cfg.MaxQueues)
	}
	for l, queues := range sets {
		switch {
		case maps.Equal(queues, l.queues):
		case l.full() && containsAll(queues, l.queues):
			r.finder.nudge() // again after the pause
		default:
			l.work(queues, r.fail)
		}
	}
	r.nextAssign = time.Now().Add(minAssignPause + time.Duration(len(r.finder.queues))*assignPausePerQueue)
}

// containsAll reports whether all contains some.
func containsAll(all, some map[string]struct{}) bool {
	for q := range some {
		if _, is := all[q]; !is {
			return false
		}
	}
	return true
}

// fail ends Run because no worker can continue.
func (r *Router) fail(err error) {
	select {
	case r.failures <- err:
	default:
	}
}
