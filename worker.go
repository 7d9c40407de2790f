package tarry

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/work"
)

// Worker leases due messages of its queues and handles many at a time. Make one with
// NewWorker, register handlers with Handle, and call Run.
type Worker struct {
	c    *Client
	cfg  WorkerConfig
	work *work.Worker
}

// NewWorker returns a worker for the messages of a client.
func NewWorker(c *Client, cfg *WorkerConfig) *Worker {
	w := &Worker{c: c, cfg: cfg.withDefaults(c)}
	full := work.Config{
		Engine: c.eng, Caps: c.caps, Dispatch: c.dispatch, InHand: c.inHand, Now: c.now, Logger: w.cfg.Logger,
		Concurrency: w.cfg.Concurrency, LeaseTTR: w.cfg.LeaseTTR, Name: w.cfg.Name, DrainTimeout: w.cfg.DrainTimeout, Retry: work.Retry(w.cfg.Retry),
		Panicked: func(value any, stack []byte) error { return &PanicError{value, stack} },
		OnError:  w.cfg.OnError, Observer: w.cfg.Observer,
	}
	if cfg == nil || cfg.Logger == nil {
		full.Trouble = c.trouble
	}
	if m := c.meter; m != nil {
		full.Began, full.Handled = m.Started, m.Handled
	}
	if w.cfg.Schedules {
		full.Also = ScheduleQueue
	}
	w.work = work.New(full)
	return w
}

// Run handles messages until ctx ends, and then drains: it stops leasing, and lets handlers
// finish for up to DrainTimeout before it ends their contexts. It releases the messages that
// were not started or were interrupted, and returns once all results are settled. It returns
// nil when every started handler has finished by itself. Closing the client or the engine
// ends it in the same way, with ErrClosed; Client.Close waits for it. A worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	const op = "work"
	if err := cmp.Or(w.cfg.check(op), w.c.runsHandlers(op, "")); err != nil {
		return err
	}
	if err := w.work.Start(ctx, op); err != nil {
		return err
	}
	if !w.c.enlist(w.work) {
		return errClosed(op, "")
	}
	defer w.c.dismiss(w.work)
	if w.cfg.Schedules {
		stop, err := w.startSchedules(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	return w.work.Run(ctx, op)
}

// Queues returns the queues that the worker leases from: those with a handler, sorted, and
// with WorkerConfig.Schedules last ScheduleQueue.
func (w *Worker) Queues() []string {
	_, queues := w.work.Serves()
	if w.cfg.Schedules {
		queues = append(queues, ScheduleQueue)
	}
	return queues
}

// The defaults of a WorkerConfig.
const (
	DefaultConcurrency  = 100
	DefaultDrainTimeout = 30 * time.Second
)

// WorkerConfig sets up a Worker. The zero value, and a nil WorkerConfig, work.
type WorkerConfig struct {
	// Name is the name under which the worker leases, see LeaseOptions.Worker. Default:
	// host:pid.
	Name string

	// Concurrency is how many messages of all queues are handled at a time. The worker
	// leases that many, plus what quick handlers can start during a call of the engine.
	// Default 100.
	Concurrency int

	// LeaseTTR is how long a lease lasts without renewal. The worker renews it while the
	// handler runs, so LeaseTTR is how long the message of a dead worker waits for another
	// one. 1 ms to 24 h. Default: each message's own TTR.
	LeaseTTR time.Duration

	// Schedules also runs the schedules of the store, see Client.SetSchedule. Any number of
	// workers may do so; such a worker needs no handlers. Run fails with ErrUnsupported on
	// an engine that has no schedules. Default: false.
	Schedules bool

	// HandlerTimeout bounds a handler: after it the handler's context ends and its lease is
	// no longer renewed. Default: none.
	HandlerTimeout time.Duration

	// DrainTimeout is how long Run lets handlers finish once its context has ended. Then
	// their contexts end too. Default 30 s; negative: at once.
	DrainTimeout time.Duration

	// Retry applies to failed messages that have no policy of their own; see RetryPolicy.
	// Default: none.
	Retry RetryPolicy

	// OnError gets each error of a message: the failure of a handler (a *PanicError after a
	// panic), or why a result could not be settled, such as ErrLeaseLost. A Snooze or an
	// interrupted drain is no failure. The Info has no Body. Calls are made one at a time,
	// on a goroutine of their own, and nothing waits for them. While 1000 errors wait,
	// further ones are dropped and counted in the log. At its end Run waits up to 5 s for
	// the remaining calls. Default: Logger gets failures and deaths.
	OnError func(Info, error)

	// Middleware wraps the handlers of all queues, the first outermost.
	Middleware []Middleware

	// Observer gets events, for metrics and logs: one at a time, on a goroutine of its own,
	// so that no handler waits for it. No event is dropped; instead the worker stops
	// leasing while 4096 events wait. At its end Run waits up to 5 s for the remaining
	// events.
	Observer func(Event)

	// Logger gets panics of handlers with their stack, lost leases, stuck handlers, and
	// failures between worker and engine. Without OnError it also gets failed handlers and
	// dead messages. Repeated trouble is logged at once, and then once a minute for each
	// queue, with its count and the newest error, and at the end of Run. The first ten
	// deaths get a line each. Beyond 32 pairs of trouble and queue at a time, queues share a
	// line. Nothing waits for the logger: see Config.Logger. Default: the client's logger.
	Logger *slog.Logger
}

func (cfg *WorkerConfig) withDefaults(c *Client) WorkerConfig {
	full := *cmp.Or(cfg, new(WorkerConfig))
	full.Name = cmp.Or(full.Name, processName())
	full.Concurrency = cmp.Or(full.Concurrency, DefaultConcurrency)
	full.DrainTimeout = cmp.Or(full.DrainTimeout, DefaultDrainTimeout)
	full.Logger = notify.Logger(cmp.Or(full.Logger, c.log))
	return full
}

func (cfg *WorkerConfig) check(op string) error {
	switch {
	case cfg.Concurrency < 1:
		return engine.Invalid(op, Ref{}, "the concurrency is %d; at least 1 is needed", cfg.Concurrency)
	case cfg.HandlerTimeout < 0:
		return engine.Invalid(op, Ref{}, "the handler timeout %s is negative", cfg.HandlerTimeout)
	}
	return cmp.Or(cfg.Retry.check(op), engine.CheckWorker(op, "", cfg.Name), engine.CheckTTR(op, "", cfg.LeaseTTR))
}

// processName returns host:pid, or only the pid where the host is no valid name of a worker.
var processName = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	pid := fmt.Sprint(":", os.Getpid())
	if engine.CheckWorker("", "", host+pid) != nil {
		return pid
	}
	return host + pid
})

// Event is what a worker's observer gets: its Kind, the message, and what happened. Fields
// that do not apply to the kind are zero.
type Event = work.Event

// EventKind is the kind of an Event.
type EventKind = work.Kind

// The kinds of events. Settlements are reported once the engine has confirmed them.
const (
	Started      = work.Started      // its handler is about to run
	Acked        = work.Acked        // handled
	Dropped      = work.Dropped      // its guard returned false
	Retried      = work.Retried      // failed; comes back at Until
	Snoozed      = work.Snoozed      // postponed to Until
	Released     = work.Released     // returned unhandled: the worker drains, or the lease was too old to start
	Buried       = work.Buried       // dead because its handler returned Bury
	Died         = work.Died         // dead because its attempts are used up
	Expired      = work.Expired      // dropped because it was past its ExpireAfter
	LeaseLost    = work.LeaseLost    // the lease was lost before the handler began, while it ran, or before it could be settled
	EngineFailed = work.EngineFailed // the engine could not be reached, for leases or for a settlement
	SelfSettled  = work.SelfSettled  // its handler returned Settled
	Stuck        = work.Stuck        // its handler has not returned 5 s after the end of its context
	Unstuck      = work.Unstuck      // its stuck handler has returned
	Unconfirmed  = work.Unconfirmed  // its result was sent, but may not have counted: see ErrUnconfirmed
)
