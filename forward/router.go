package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
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

	// ListEvery is how often the engine's queues are listed to find those that match
	// patterns and that no hint reported. If listing is slow it is done less often, so that
	// it takes at most a fiftieth of the time. Default 5 s.
	ListEvery time.Duration

	// MaxQueues bounds how many queues the patterns of a route take at a time. More wait
	// until others have been empty for a minute, and the log says so. Default 100,000; over
	// HTTP at most 10,000.
	MaxQueues int

	// Middleware wraps the Send of each message, the first outermost, within the message's
	// slot. Default: none.
	Middleware []tarry.Middleware

	// Logger receives failures to forward: for each route the first at once, then one line a
	// minute with their number. Default: slog.Default().
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

	mu     sync.Mutex
	ran    bool
	ended  bool
	routes Routes           // as set, with their defaults filled in
	lanes  map[string]*lane // by Route.Queue
	told   chan struct{}    // one token: the routes were set

	// Used only by Run's goroutine.
	find    *finder
	after   time.Time // earliest next change of workers for found queues
	broken  chan error
	trouble *notify.TroubleLog
	gone    sync.WaitGroup
}

var (
	crowded = notify.Trouble{Text: "patterns match more queues than may be taken at a time", Level: slog.LevelWarn}
	blind   = notify.Trouble{Text: "queues cannot be listed; new ones may be found late", Level: slog.LevelWarn}
)

// NewRouter returns a Router for the messages of a client.
func NewRouter(c *tarry.Client, cfg *RouterConfig) *Router {
	r := &Router{c: c, lanes: make(map[string]*lane), told: make(chan struct{}, 1), find: newFinder(), broken: make(chan error, 1)}
	if cfg != nil {
		r.cfg = *cfg
	}
	if r.cfg.ListEvery <= 0 {
		r.cfg.ListEvery = DefaultListEvery
	}
	if r.cfg.MaxQueues <= 0 {
		r.cfg.MaxQueues = DefaultMaxQueues
	}
	if c.Capabilities().LeaseWait {
		r.cfg.MaxQueues = min(r.cfg.MaxQueues, tarry.MaxBatch)
	}
	if r.cfg.Logger == nil {
		r.cfg.Logger = slog.Default()
	}
	r.trouble = notify.NewTroubleLog(r.cfg.Logger)
	return r
}

// Set replaces all routes. It opens targets without connecting. After an error, which names
// the route, nothing has changed.
//
// Set may be called during Run. Unchanged routes continue undisturbed. Changed ones start
// anew at once, while the Sends of the old ones finish. Removed ones drain. Set fails with
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
			r.gone.Go(func() { r.drop(l) })
		}
	}
	if err != nil {
		return err
	}
	r.routes, r.lanes = full, lanes
	select {
	case r.told <- struct{}{}:
	default:
	}
	return nil
}

// drop ends the lane of a removed route.
func (r *Router) drop(l *lane) {
	if err := l.close(); err != nil {
		r.cfg.Logger.Warn("a route ended with an error", "error", err)
	}
}

// Run forwards messages until ctx ends, then drains: it leases no more, lets Sends finish
// within DrainTimeout, releases messages that wait for their rate, and closes the targets.
// It returns nil after a clean end, and tarry.ErrClosed if the client was closed. Better end
// Run before the client, which does not know DrainTimeout. A target that ignores context and
// timeout, or does not close, is abandoned 5 s later. A router runs once.
func (r *Router) Run(ctx context.Context) error {
	r.mu.Lock()
	ran := r.ran
	r.ran = true
	r.mu.Unlock()
	if ran {
		return &tarry.Error{Op: "route", Err: tarry.ErrInvalid, Hint: "a router runs once; make a new one"}
	}
	err := r.direct(ctx)

	r.mu.Lock()
	r.ended = true
	lanes := r.lanes
	r.mu.Unlock()
	errs := make(chan error, len(lanes))
	for _, l := range lanes {
		r.gone.Go(func() { errs <- l.close() })
	}
	r.gone.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	r.trouble.Flush()
	return err
}

// direct makes each lane work on its queues until ctx ends or the client is closed.
func (r *Router) direct(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var (
		looking sync.WaitGroup
		lists   chan list // nil: no list in progress
		due     bool      // a list is due
		again   time.Time // but not before this
		change  <-chan time.Time
		unwatch func()
		tick    = time.NewTicker(r.cfg.ListEvery)
	)
	look := func() {
		lists = make(chan list, 1)
		looking.Go(func() { lists <- r.find.look(ctx, r.c) })
	}
	defer func() {
		cancel()
		looking.Wait()
		tick.Stop()
		if unwatch != nil {
			unwatch()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-r.broken:
			return err
		case <-r.told:
			due = r.heed()
			switch {
			case due && unwatch == nil:
				unwatch = r.c.Engine().Watch(r.find.hint)
			case !due && unwatch != nil:
				unwatch()
				unwatch = nil
			}
			change = nil
			r.assign()
		case <-r.find.kick:
			if change == nil {
				change = time.After(time.Until(r.after))
			}
			continue
		case <-change:
			change = nil
			r.find.gather()
			r.assign()
		case l := <-lists:
			lists = nil
			again = time.Now().Add(listShare * time.Since(l.began))
			if l.err != nil {
				r.trouble.Note(blind, "", "error", l.err)
				break
			}
			r.find.take(l)
			r.assign()
		case <-tick.C:
			due = unwatch != nil && !time.Now().Before(again)
		}
		if due && lists == nil {
			due = false
			look()
		}
	}
}

// listShare bounds the cost of lists: the next one waits at least this many times as long as
// the last one took.
const listShare = 50

// heed passes the routes to the finder, and reports whether there are patterns.
func (r *Router) heed() (patterns bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.find.heed(r.routes)
	return slices.ContainsFunc(r.routes, func(r Route) bool { return r.pattern() })
}

// The pause between two changes of workers' queues grows with their number, since each new
// worker starts with all of them.
const (
	changeRest  = 20 * time.Millisecond
	changeShare = 20 * time.Microsecond // per queue
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
	more := 0
	for _, stays := range []bool{true, false} { // queues with a worker come first
		for q := range r.find.queues {
			i := r.routes.Index(q)
			if i < 0 {
				continue // the routes have changed again
			}
			l := r.lanes[r.routes[i].Queue]
			if _, is := l.queues[q]; is != stays {
				continue
			}
			if len(sets[l]) == r.cfg.MaxQueues {
				more++
				continue
			}
			sets[l][q] = struct{}{}
		}
	}
	if more > 0 {
		r.trouble.Note(crowded, "", "waiting", more, "most", r.cfg.MaxQueues)
	}
	for l, queues := range sets {
		switch {
		case maps.Equal(queues, l.queues):
		case l.full() && holds(queues, l.queues):
			r.find.nudge() // again after the pause
		default:
			l.work(queues, r.breaks)
		}
	}
	r.after = time.Now().Add(changeRest + time.Duration(len(r.find.queues))*changeShare)
}

// holds reports whether all contains some.
func holds(all, some map[string]struct{}) bool {
	for q := range some {
		if _, is := all[q]; !is {
			return false
		}
	}
	return true
}

// breaks ends the router because no worker can continue.
func (r *Router) breaks(err error) {
	select {
	case r.broken <- err:
	default:
	}
}
