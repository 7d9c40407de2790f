package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/trouble"
)

// lane is a route that runs: one target, and a worker on the queues that are the route's.
// A worker's queues are fixed, so when they change a new worker begins and the one before
// it drains; what both may do at a time together is the route's.
type lane struct {
	c       *tarry.Client
	route   Route
	target  Target
	send    tarry.HandlerFunc // target.Send inside the router's middleware
	drain   time.Duration     // negative: none
	log     *slog.Logger
	slots   chan struct{} // holds a token for each message that is being handed on
	waiting atomic.Int64  // messages that are leased and have no slot
	limit   *rate.Limiter // nil: none
	trouble *trouble.Log

	end   chan struct{}   // closed when it drains for good
	life  context.Context // ends when it has drained for too long
	cut   context.CancelFunc
	cuts  atomic.Int64   // messages that were given back then
	crews sync.WaitGroup // the workers

	queues map[string]struct{} // guarded by Router.mu

	mu    sync.Mutex
	leave context.CancelFunc // ends the latest worker; nil: there is none
	ended bool
	errs  []error
}

var unforwarded = trouble.Kind{Text: "messages could not be handed on", Level: slog.LevelWarn}

// overlap is how long a worker goes on when another takes its place: what is known of
// its queues is then known to that.
const overlap = 50 * time.Millisecond

func newLane(c *tarry.Client, r Route, cfg *RouterConfig) (*lane, error) {
	log := cfg.Logger.With("route", r.Name)
	r.Options.Logger = log
	target, err := r.open()
	if err != nil {
		return nil, err
	}
	l := &lane{
		c: c, route: r, target: target, drain: cfg.DrainTimeout, log: log,
		send:    target.Send,
		slots:   make(chan struct{}, r.width()),
		trouble: trouble.New(log),
		end:     make(chan struct{}),
	}
	if l.drain == 0 {
		l.drain = tarry.DefaultDrainTimeout
	}
	for _, m := range slices.Backward(cfg.Middleware) {
		l.send = m(l.send)
	}
	l.life, l.cut = context.WithCancel(context.Background())
	if r.Rate > 0 {
		l.limit = rate.NewLimiter(rate.Limit(r.Rate), r.Burst)
	}
	return l, nil
}

// work has a worker take these queues, in place of the one there is. broken is told when
// it cannot go on.
func (l *lane) work(queues map[string]struct{}, broken func(error)) {
	l.queues = queues
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	before := l.leave
	l.leave = nil
	if len(queues) > 0 {
		w := tarry.NewWorker(l.c, &tarry.WorkerConfig{Concurrency: cap(l.slots), DrainTimeout: l.route.longest(), Logger: l.log,
			OnError: func(tarry.Info, error) {}, // hand tells the log
		})
		for q := range queues {
			tarry.Handle(w, tarry.NewTopic[[]byte](q), l.hand)
		}
		ctx, leave := context.WithCancel(context.Background())
		l.leave = leave
		l.crews.Go(func() {
			defer leave()
			err := w.Run(ctx)
			switch {
			case err == nil:
			case errors.Is(err, tarry.ErrClosed):
				broken(err)
			case l.lasts():
				// Another has its place: this is of no meaning for the end.
				l.trouble.Note(unforwarded, "", "error", err)
			default:
				l.fail(err)
			}
		})
	}
	if before == nil {
		return
	}
	l.crews.Go(func() {
		select {
		case <-time.After(overlap):
		case <-l.end:
		}
		before()
	})
}

// lasts reports whether the lane goes on.
func (l *lane) lasts() bool {
	select {
	case <-l.end:
		return false
	default:
		return true
	}
}

// full reports whether as many messages wait for slots as there are. A further worker would
// lease more, which could only wait behind them.
func (l *lane) full() bool { return l.waiting.Load() >= int64(cap(l.slots)) }

// close drains the lane, closes its target and says what went wrong.
func (l *lane) close() error {
	l.mu.Lock()
	l.ended = true
	close(l.end)
	if l.leave != nil {
		l.leave()
	}
	l.mu.Unlock()
	defer l.cut()
	if !within(l.drain, l.crews.Wait) {
		l.cut()
		if !within(late, l.crews.Wait) {
			l.fail(fmt.Errorf("the target has not returned from Send %s after the end of its context", late))
		}
		if n := l.cuts.Load(); n > 0 {
			l.fail(fmt.Errorf("%d messages were given back that were not handed on within the drain timeout of %s", n, max(l.drain, 0)))
		}
	}
	if !within(late, func() { l.fail(l.target.Close()) }) {
		l.log.Warn("the target does not close; it is left behind", "after", late)
	}
	l.trouble.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.errs...); err != nil {
		return fmt.Errorf("route %s: %w", l.route.Name, err)
	}
	return nil
}

// fail notes an error, if it is one.
func (l *lane) fail(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, err)
	}
}

// late is how long what does not honour its context is waited for.
const late = 5 * time.Second

// within waits for f to return, and reports whether it has before d was over.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// hand hands a message on. What is cut off by the end of the drain goes back as it came.
func (l *lane) hand(ctx context.Context, m *tarry.Message[[]byte]) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.life, func() { cancel(errDrained) })()
	defer func() {
		if context.Cause(ctx) == errDrained && (errors.Is(err, context.Canceled) || errors.Is(err, errDrained)) {
			l.cuts.Add(1)
			err = tarry.Snooze(0)
		}
	}()
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer func() { <-l.slots }()
	if l.limit != nil {
		if err := l.await(ctx); err != nil {
			return err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			e := &tarry.PanicError{Value: p, Stack: debug.Stack()}
			err = e
			l.trouble.Note(unforwarded, "", "queue", m.Queue, "id", m.ID, "error", err, "stack", string(e.Stack))
		}
	}()
	err = l.send(ctx, m)
	if err != nil && ctx.Err() == nil {
		l.trouble.Note(unforwarded, "", "queue", m.Queue, "id", m.ID, "key", m.Key, "attempt", m.Attempt, "error", err)
	}
	return err
}

var errDrained = errors.New("the route has ended and its drain timeout is over")

// enter waits for a slot, which the worker before this one may have.
func (l *lane) enter(ctx context.Context) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.end:
		return tarry.Snooze(0)
	}
}

// await waits until the rate lets a message go. Its lease is renewed meanwhile.
func (l *lane) await(ctx context.Context) error {
	r := l.limit.Reserve()
	d := r.Delay()
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return context.Cause(ctx)
	case <-l.end:
		r.Cancel()
		return tarry.Snooze(0)
	}
}
