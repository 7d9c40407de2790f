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
	"github.com/tarryhq/tarry/internal/trouble"
)

// The defaults of a RouterConfig.
const (
	DefaultListEvery = 5 * time.Second
	DefaultMaxQueues = 100_000
)

// RouterConfig sets up a Router. The zero value, and a nil RouterConfig, work.
type RouterConfig struct {
	// DrainTimeout is how long a route that ends lets what is being handed on finish; then
	// it is cut off, and given back without an attempt counted. Default 30 s; negative: at
	// once.
	DrainTimeout time.Duration

	// ListEvery is how often the engine's queues are listed to find those that patterns
	// fit, and that no hint told of. Where listing takes long it is done more rarely, for
	// a fiftieth of the time at most. Default 5 s.
	ListEvery time.Duration

	// MaxQueues bounds how many queues patterns take at a time, of each route. More wait
	// until others have been empty for a minute, and the log is told. Default 100,000;
	// over HTTP 10,000 in any case.
	MaxQueues int

	// Middleware wraps the handing on of each message, the first outermost. It is within
	// the message's slot. Default: none.
	Middleware []tarry.Middleware

	// Logger is told of messages that could not be handed on, of each route the first at
	// once and then one line a minute, which says how many there were. Default:
	// slog.Default().
	Logger *slog.Logger
}

// Router hands the due messages of queues on to the targets of its routes. Each route has
// a worker, slots and a target of its own, so that none is delayed by the target of
// another. Make one with NewRouter, give it routes with Set, and call Run.
//
// Its methods may be called from many goroutines.
type Router struct {
	c   *tarry.Client
	cfg RouterConfig

	mu     sync.Mutex
	ran    bool
	ended  bool
	routes Routes           // as set, with their defaults filled in
	lanes  map[string]*lane // by Route.Queue
	told   chan struct{}    // holds one token: they were set

	// Of Run's goroutine.
	find    *finder
	after   time.Time // when workers may change again because queues were found
	broken  chan error
	trouble *trouble.Log
	gone    sync.WaitGroup
}

var (
	crowded = trouble.Kind{Text: "patterns fit more queues than may be taken at a time", Level: slog.LevelWarn}
	blind   = trouble.Kind{Text: "queues cannot be listed; new ones may be found late", Level: slog.LevelWarn}
)

// NewRouter returns a Router on the messages of a client.
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
	r.trouble = trouble.New(r.cfg.Logger)
	return r
}

// Set gives the router its routes, all of them, and takes the place of those it had. It
// opens targets and does not connect. With an error, which says of which route it tells,
// nothing has changed.
//
// Set may be called while Run runs: routes that are as they were go on untouched; those
// that have changed begin anew at once, and what the old ones were handing on is finished
// beside them; those that are gone drain. ErrUnsupported of a pattern where the engine
// cannot list its queues; ErrClosed when Run has ended.
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

// drop ends a lane that is not a route any more.
func (r *Router) drop(l *lane) {
	if err := l.close(); err != nil {
		r.cfg.Logger.Warn("a route has ended, but not in good order", "error", err)
	}
}

// Run hands messages on until ctx ends, and then drains: nothing more is leased, what is
// being handed on may finish within DrainTimeout, what waits for its rate goes back, and
// the targets are closed. It returns nil after an end in good order, and tarry.ErrClosed
// when the client was closed, before which Run is better ended: the client knows nothing of
// DrainTimeout. A target that heeds neither context nor timeout is left behind 5 s after
// that, and likewise one that does not close. A router runs once.
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

// direct has each lane work on its queues until ctx ends, or the client is closed.
func (r *Router) direct(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var (
		looking sync.WaitGroup
		lists   chan list // nil: none is being made
		due     bool      // the next is to be made
		again   time.Time // not before this
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

// listShare is how many times as long as listing takes it then is not done.
const listShare = 50

// heed has the finder find queues for the routes, and reports whether there are patterns.
func (r *Router) heed() (patterns bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.find.heed(r.routes)
	return slices.ContainsFunc(r.routes, func(r Route) bool { return r.pattern() })
}

// Between two changes of the queues that workers have is a rest, the longer the more
// there are: each begins anew with all of them.
const (
	changeRest  = 20 * time.Millisecond
	changeShare = 20 * time.Microsecond // for each queue
)

// assign gives each lane whose queues have changed a worker on those it has.
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
	for _, stays := range []bool{true, false} { // those that have a worker come first
		for q := range r.find.queues {
			i := r.routes.Index(q)
			if i < 0 {
				continue // other routes were set, which are heeded next
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
			r.find.nudge() // again after the rest
		default:
			l.work(queues, r.breaks)
		}
	}
	r.after = time.Now().Add(changeRest + time.Duration(len(r.find.queues))*changeShare)
}

// holds reports whether all that is in some is in all.
func holds(all, some map[string]struct{}) bool {
	for q := range some {
		if _, is := all[q]; !is {
			return false
		}
	}
	return true
}

// breaks ends the router because no worker can go on.
func (r *Router) breaks(err error) {
	select {
	case r.broken <- err:
	default:
	}
}
