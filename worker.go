package tarry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/trouble"
)

// Worker leases due messages of its queues and handles many at a time. Make one with
// NewWorker, register handlers with Handle, and call Run.
//
// The path of a message: the dispatcher leases as many messages as there are free slots and
// as are likely to finish meanwhile, and delivers them (deliver). They wait in line until a
// runner takes them, runs the handler and frees the slot (work, finish). The settler sends
// results to the engine in batches. One goroutine renews all leases (keep). None of them
// waits for the user's observer or log, which have goroutines of their own (teller).
//
//	deliver ──▶ work ──▶ finish ──▶ settler ──▶ settled
//	               ▲
//	             keep: renews, and cancels what is lost
//
// w.mu guards the deliveries; it is never held across a call of the engine, the dispatcher
// or user code.
type Worker struct {
	c     *Client
	cfg   WorkerConfig
	now   func() time.Time
	sets  *settler
	base  context.Context // of handlers' contexts: has Run's values, but outlives its ctx
	tasks sync.WaitGroup  // the keeper and its calls

	room dispatch.Room // written with mu held

	mu           sync.Mutex
	ran          bool
	queues       map[string]*handling
	kept         agenda    // deliveries that have not ended
	idle         []*runner // runners without work
	waking       bool      // a woken runner has not yet checked the line
	running      int       // deliveries that hold slots
	queued       int       // deliveries not started
	turn         turn      // which line is next
	freedPending bool      // the dispatcher does not know of freed slots yet: the line may take them
	pace         pace
	unconfirmed  int           // results that the engine has not confirmed yet
	confirmed    int           // results that the engine has confirmed, or never will
	more         chan struct{} // closed at the next confirmation; nil: nothing waits for it
	draining     bool
	quiet        chan struct{} // closed when draining and nothing runs
	broken       error         // why the worker must end
	stopped      chan struct{} // closed when broken is set
	cut          int           // handlers interrupted by the drain
	failed       int           // results that could not be sent

	look   time.Time     // when the keeper wakes next
	lineBy time.Time     // when it checks the lines next
	looks  int           // deliveries that it has checked
	wake   chan struct{} // holds a token to wake the keeper
	ended  bool          // the keeper must end

	events  teller[Event]  // to the observer
	faults  *teller[fault] // to OnError
	trouble *trouble.Log
	held    atomic.Bool // leasing has stopped because the observer is behind
}

// maxUnconfirmed bounds the results that the engine has not confirmed, so that a slow
// engine slows the handlers down instead of filling memory.
const maxUnconfirmed = 4096

// drainGrace bounds the wait for handlers after the drain has ended their contexts, and for
// the last results.
const drainGrace = 5 * time.Second

// NewWorker returns a worker for the messages of a client.
func NewWorker(c *Client, cfg *WorkerConfig) *Worker {
	w := &Worker{
		c:       c,
		cfg:     cfg.withDefaults(c),
		now:     c.now,
		queues:  make(map[string]*handling),
		quiet:   make(chan struct{}),
		stopped: make(chan struct{}),
		wake:    make(chan struct{}, 1),
		look:    never,
		lineBy:  never,
		trouble: c.trouble,
	}
	if cfg != nil && cfg.Logger != nil {
		w.trouble = trouble.New(w.cfg.Logger)
	}
	w.events.call, w.events.called = w.tell, w.observerReturned
	w.faults = w.newFaults()
	w.sets = newSettler(c, w.cfg.Logger, w.settled)
	return w
}

// register adds a queue's handling.
func (w *Worker) register(h *handling) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic("tarry: Handle was called after Run, for queue " + h.queue)
	}
	if w.queues[h.queue] != nil {
		panic("tarry: Handle was called twice for queue " + h.queue)
	}
	w.queues[h.queue] = h
}

// Run handles messages until ctx ends, and then drains. It stops leasing, lets handlers
// finish for up to DrainTimeout, then ends their contexts, releases what was not started or
// was interrupted, and returns once all results are settled. It returns nil when every
// started handler has finished by itself. Closing the client or the engine ends it in the
// same way, with ErrClosed; Client.Close waits for it. A worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	const op = "work"
	queues, err := w.start(ctx, op)
	if err != nil {
		return err
	}
	if !w.c.enlist(w) {
		return errClosed(op, "")
	}
	defer w.c.dismiss(w)
	w.tasks.Go(w.keep)
	leave := w.c.dispatch.Subscribe(&dispatch.Subscription{
		Queues:  queues,
		TTR:     w.cfg.LeaseTTR,
		Spread:  true,
		Room:    &w.room,
		Deliver: w.deliver,
		Fail:    w.fail,
		Noted:   w.noted,
	})
	select {
	case <-ctx.Done():
	case <-w.stopped:
	}
	leave(context.Background(), drainGrace)
	return w.drain(op)
}

// start checks the configuration and returns the queues.
func (w *Worker) start(ctx context.Context, op string) (queues []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ran:
		return nil, engine.Invalid(op, Ref{}, "a worker runs once; make a new one")
	case len(w.queues) == 0:
		return nil, engine.Invalid(op, Ref{}, "no handler is registered; call Handle before Run")
	}
	if err := w.cfg.check(op); err != nil {
		return nil, err
	}
	w.room.Of = make(map[string]*atomic.Int64)
	for q, h := range w.queues {
		if err := engine.CheckQueue(op, q); err != nil {
			return nil, err
		}
		queues = append(queues, q)
		if h.slots > 0 {
			h.free.Store(int64(h.slots))
			w.room.Of[q] = &h.free
		}
	}
	slices.Sort(queues)
	w.ran = true
	w.base = context.WithoutCancel(ctx)
	w.updateRoom()
	return queues, nil
}

// fail is called by the dispatcher when the engine could not be asked. The dispatcher tries
// again, unless the engine is closed.
func (w *Worker) fail(err error) {
	w.observe(Event{Kind: EngineFailed, Count: 1, Err: err})
	if errors.Is(err, ErrClosed) {
		w.stop(err)
	}
}

// stop makes the worker drain and end with err.
func (w *Worker) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(err)
}

// end is stop. Called with w.mu held.
func (w *Worker) end(err error) {
	if w.broken == nil {
		w.broken = err
		close(w.stopped)
	}
}

// noted is called by the dispatcher with the number of messages of a queue that ended
// without a handler.
func (w *Worker) noted(queue string, expired, died int) {
	if expired > 0 {
		w.observeAlone(Event{Kind: Expired, Queue: queue, Count: expired})
	}
	if died > 0 {
		w.trouble.Note(messagesLapsed, queue, "queue", queue, "count", died)
		w.observeAlone(Event{Kind: Died, Queue: queue, Count: died})
	}
}

// kick wakes the keeper.
func (w *Worker) kick() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// The defaults of a WorkerConfig.
const (
	DefaultConcurrency  = 100
	DefaultDrainTimeout = 30 * time.Second
)

// WorkerConfig sets up a Worker. The zero value, and a nil WorkerConfig, work.
type WorkerConfig struct {
	// Concurrency is how many messages of all queues are handled at a time. The worker
	// leases as many, and ahead of them what quick handlers can start during a call.
	// Default 100.
	Concurrency int

	// LeaseTTR is how long a lease lasts without renewal. The worker renews it while the
	// handler runs, so LeaseTTR is how long the message of a dead worker waits for another
	// one. 1 ms to 24 h. Default: each message's own TTR.
	LeaseTTR time.Duration

	// HandlerTimeout bounds a handler: after it the handler's context ends and its lease is
	// no longer renewed. Default: none.
	HandlerTimeout time.Duration

	// DrainTimeout is how long Run lets handlers finish once its context has ended. After
	// it their contexts end. Default 30 s; negative: at once.
	DrainTimeout time.Duration

	// Retry is how failed messages are retried that have no policy of their own; see
	// RetryPolicy. Default: none.
	Retry RetryPolicy

	// OnError gets each error of a message: a handler's failure, with a *PanicError after a
	// panic (a Snooze or an interrupted drain is no failure), and why a result could not be
	// settled, such as ErrLeaseLost. The Info has no Body. Calls are made one at a time, on
	// a goroutine of their own, and nothing waits for them: while 1000 errors wait, further
	// ones are dropped and counted in the log. At its end Run waits up to 5 s for the
	// remaining calls. Default: Logger gets failures and deaths.
	OnError func(Info, error)

	// Middleware wraps the handlers of all queues, the first outermost.
	Middleware []Middleware

	// Observer gets events, for metrics and logs: one at a time, on a goroutine of its own,
	// so that no handler waits for it. No event is dropped; instead the worker stops
	// leasing while 4096 events wait. At its end Run waits up to 5 s for the remaining
	// events.
	Observer func(Event)

	// Logger gets panics of handlers with their stack, lost leases, stuck handlers, and
	// failures between worker and engine; without OnError also failed handlers and dead
	// messages. Repeated trouble is logged at once, and then once a minute for each queue,
	// with its count; the first ten deaths, lost leases and stuck handlers get a line each.
	// Beyond 32 such kinds and queues at a time, queues share a line. Nothing waits for the
	// logger: see Config.Logger. Default: the client's logger.
	Logger *slog.Logger
}

func (cfg *WorkerConfig) withDefaults(c *Client) WorkerConfig {
	var full WorkerConfig
	if cfg != nil {
		full = *cfg
	}
	if full.Concurrency == 0 {
		full.Concurrency = DefaultConcurrency
	}
	if full.DrainTimeout == 0 {
		full.DrainTimeout = DefaultDrainTimeout
	}
	if full.Logger == nil {
		full.Logger = c.log
	}
	full.Logger = logAside(full.Logger)
	return full
}

func (cfg *WorkerConfig) check(op string) error {
	switch {
	case cfg.Concurrency < 1:
		return engine.Invalid(op, Ref{}, "the concurrency is %d; at least 1 is needed", cfg.Concurrency)
	case cfg.HandlerTimeout < 0:
		return engine.Invalid(op, Ref{}, "the handler timeout %s is negative", cfg.HandlerTimeout)
	}
	if err := cfg.Retry.check(op); err != nil {
		return err
	}
	return engine.CheckTTR(op, "", cfg.LeaseTTR)
}
