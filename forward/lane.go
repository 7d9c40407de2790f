package forward

import (
	"cmp"
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
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/work"
)

// lane is a running route: one target, and a worker for the route's queues. A worker's
// queues are fixed, so when they change a new worker starts and the old one drains. The
// limits of the route apply to both together.
type lane struct {
	c       *tarry.Client
	route   Route
	target  Target
	send    tarry.HandlerFunc // target.Send inside the router's middleware
	drain   time.Duration     // negative: none
	log     *slog.Logger
	slots   chan struct{} // a token for each message being sent
	waiting atomic.Int64  // leased messages without a slot
	limit   *rate.Limiter // nil: none
	trouble *notify.TroubleLog

	end   chan struct{}   // closed when the final drain begins
	life  context.Context // cancelled when the drain takes too long; parent of the handlers' contexts
	cut   context.CancelCauseFunc
	cuts  atomic.Int64   // messages released at the end of the drain
	crews sync.WaitGroup // the workers

	queues map[string]struct{} // guarded by Router.mu

	mu    sync.Mutex
	leave context.CancelFunc // ends the latest worker; nil: none
	ended bool
	errs  []error
}

var unforwarded = notify.Trouble{Text: "messages could not be forwarded", Level: slog.LevelWarn}

// overlap is how long the old worker continues, so that the new one can learn what is due in
// its queues.
const overlap = 50 * time.Millisecond

func newLane(c *tarry.Client, r Route, cfg *RouterConfig) (*lane, error) {
	log := cfg.Logger.With("route", r.Name)
	r.Options.Logger = log
	target, err := r.open()
	if err != nil {
		return nil, err
	}
	l := &lane{
		c: c, route: r, target: target, drain: cmp.Or(cfg.DrainTimeout, tarry.DefaultDrainTimeout), log: log,
		send:    target.Send,
		slots:   make(chan struct{}, r.width()),
		trouble: notify.NewTroubleLog(log),
		end:     make(chan struct{}),
	}
	for _, m := range slices.Backward(cfg.Middleware) {
		l.send = m(l.send)
	}
	l.life, l.cut = context.WithCancelCause(context.Background())
	if r.Rate > 0 {
		l.limit = rate.NewLimiter(rate.Limit(r.Rate), r.Burst)
	}
	return l, nil
}

// work starts a worker on these queues, in place of the current one. broken is called if it
// cannot continue.
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
			OnError: func(tarry.Info, error) {}, // hand logs errors
		})
		for q := range queues {
			tarry.Handle(w, tarry.NewTopic[[]byte](q), l.hand)
		}
		ctx, leave := context.WithCancel(work.WithLife(context.Background(), l.life))
		l.leave = leave
		l.crews.Go(func() {
			defer leave()
			err := w.Run(ctx)
			switch {
			case err == nil:
			case errors.Is(err, tarry.ErrClosed):
				broken(err)
			case l.lasts():
				// It was replaced: its error does not affect the end.
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

// lasts reports whether the lane continues.
func (l *lane) lasts() bool {
	select {
	case <-l.end:
		return false
	default:
		return true
	}
}

// full reports whether as many messages wait as there are slots. Another worker would only
// lease more messages that wait.
func (l *lane) full() bool { return l.waiting.Load() >= int64(cap(l.slots)) }

// close drains the lane, closes its target and returns what went wrong.
func (l *lane) close() error {
	l.mu.Lock()
	l.ended = true
	close(l.end)
	if l.leave != nil {
		l.leave()
	}
	l.mu.Unlock()
	defer l.cut(errDrained)
	if !duration.Returns(l.crews.Wait, l.drain) {
		l.cut(errDrained)
		if !duration.Returns(l.crews.Wait, late) {
			l.fail(fmt.Errorf("its Send has not returned %s after the end of its context", late))
		}
		if n := l.cuts.Load(); n > 0 {
			l.fail(fmt.Errorf("%d messages were released because they could not be forwarded within the drain timeout of %s", n, max(l.drain, 0)))
		}
	}
	if !duration.Returns(func() { l.fail(l.target.Close()) }, late) {
		l.log.Warn("abandoned a target that does not close", "after", late)
	}
	l.trouble.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.errs...); err != nil {
		return fmt.Errorf("route %s: %w", l.route.Name, err)
	}
	return nil
}

// fail records an error unless it is nil.
func (l *lane) fail(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs = append(l.errs, err)
	}
}

// late is how long to wait for code that ignores its context.
const late = 5 * time.Second

// hand forwards a message. If the end of the drain interrupts it, it is released.
func (l *lane) hand(ctx context.Context, m *tarry.Message[[]byte]) (err error) {
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

var errDrained = errors.New("the route has ended, and its drain timeout has passed")

// enter waits for a slot; the previous worker may hold some.
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

// await waits until the rate allows a message. The worker renews its lease meanwhile.
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
