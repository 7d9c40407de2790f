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

// Worker leases what is due in its queues and handles it, many messages at a time.
// Make one with NewWorker, register handlers with Handle, and call Run.
//
// The way of a message: the dispatcher asks for as many messages as there are free
// slots and as are finished until it answers, and delivers them (deliver); they stand
// in line until a hand takes them, runs the handler and frees the slot (work, finish);
// the settler tells the engine, many results at a time. Meanwhile one goroutine renews the leases of all that run
// (keep). None of them waits for the user's observer or log, which have goroutines of
// their own (teller).
//
//	deliver ──▶ work ──▶ finish ──▶ settler ──▶ settled
//	               ▲
//	             keep: renews, and cancels what is lost
//
// w.mu guards which deliveries run; it is never held over a call of the engine, the
// dispatcher or the user's code.
type Worker struct {
	c     *Client
	cfg   WorkerConfig
	now   func() time.Time
	sets  *settler
	base  context.Context // handlers' contexts: Run's values, not its end
	tasks sync.WaitGroup  // the keeper and its calls

	room dispatch.Room // written with mu held

	mu       sync.Mutex
	ran      bool
	queues   map[string]*handling
	kept     agenda  // the deliveries that were leased and have not ended
	idle     []*hand // the hands that have nothing to do
	rousing  bool    // a hand was roused and has not looked yet who else waits
	running  int     // deliveries that hold slots
	queued   int     // deliveries that were not begun
	turn     turn    // whose line is next
	untold   bool    // the dispatcher was not told of freed slots, which the line is to take
	pace     pace
	unsaid   int           // handled, but the engine has not confirmed it yet
	said     int           // results that the engine has confirmed, or will not
	more     chan struct{} // closed when more are said; nil: nobody waits for that
	draining bool
	quiet    chan struct{} // closed when draining and nothing runs
	broken   error         // why the worker cannot go on
	stopped  chan struct{} // closed when broken is set
	cut      int           // handlers interrupted by the drain
	failed   int           // settlements that could not be delivered

	look   time.Time     // when the keeper looks next
	lineBy time.Time     // when it looks at the line next
	looks  int           // how many deliveries it has looked at
	wake   chan struct{} // holds one token: the keeper has to look
	ended  bool          // the keeper has to end

	events  teller[Event]  // to the observer
	faults  *teller[fault] // to OnError
	trouble *trouble.Log
	held    atomic.Bool // nothing was leased because the observer is behind
}

// maxUnsaid bounds the results that wait to be confirmed by the engine, so that a
// slow one slows the handlers down instead of filling memory.
const maxUnsaid = 4096

// drainGrace is how long handlers whose context the drain has ended, and the last
// settlements, may take.
const drainGrace = 5 * time.Second

// NewWorker returns a worker on the messages of a client.
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
	w.events.tell, w.events.told = w.tell, w.heard
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

// Run handles messages until ctx ends, and then drains: it leases nothing more, lets
// the handlers finish for up to DrainTimeout, then ends their contexts, gives back
// what was not started or was interrupted, and returns when the engine knows all
// results. It returns nil when every handler that was started has finished by
// itself. It ends in the same way when the client is closed, whose Close waits for it,
// and when the engine is; then with ErrClosed. A worker runs once.
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

// start returns the queues.
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
	w.tellRoom()
	return queues, nil
}

// fail is told by the dispatcher that the engine could not be asked. The dispatcher tries again, unless that is hopeless.
func (w *Worker) fail(err error) {
	w.observe(Event{Kind: EngineFailed, Count: 1, Err: err})
	if errors.Is(err, ErrClosed) {
		w.stop(err)
	}
}

// stop has the worker drain and end with err.
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

// noted is told by the dispatcher of messages of a queue that ended without any
// handler.
func (w *Worker) noted(queue string, expired, died int) {
	if expired > 0 {
		w.observeAlone(Event{Kind: Expired, Queue: queue, Count: expired})
	}
	if died > 0 {
		w.trouble.Note(messagesLapsed, queue, "queue", queue, "count", died)
		w.observeAlone(Event{Kind: Died, Queue: queue, Count: died})
	}
}

// kick makes the keeper look.
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
	// Concurrency is how many messages of all queues are handled at a time. So many are
	// leased, and ahead of them what quick handlers begin during a call. Default 100.
	Concurrency int

	// LeaseTTR is how long a lease lasts before it must be renewed, which the worker does
	// while the handler runs; so it is how long a message of a dead worker waits for
	// another. 1 ms to 24 h. Default: each message's own.
	LeaseTTR time.Duration

	// HandlerTimeout bounds a handler: its context ends then, and its lease is no
	// longer renewed. Default: none.
	HandlerTimeout time.Duration

	// DrainTimeout is how long Run lets handlers finish once its context has ended;
	// theirs end then. Default 30 s; negative: they end at once.
	DrainTimeout time.Duration

	// Retry is how failures of handlers are retried where the message's own policy says
	// nothing; see RetryPolicy. Default: it says nothing either.
	Retry RetryPolicy

	// OnError is told of each error of a message: what a handler failed with (Snooze is
	// no failure, nor is what the drain interrupts), a *PanicError when it panicked, and
	// why a result could not be told to the engine, such as ErrLeaseLost. The Info has no
	// Body. It is called for one error after the other, on a goroutine of its own, and
	// nothing waits for it: what comes while 1000 wait is dropped and counted in the log.
	// In the end Run waits 5 s at most for it to hear the rest. Default: Logger is told
	// of failures and deaths.
	OnError func(Info, error)

	// Middleware wraps the handlers of all queues, the first outermost.
	Middleware []Middleware

	// Observer is told what happens, for metrics and logs: one event after the other,
	// on a goroutine of its own, so that nothing that runs waits for it. No event is
	// left out; instead, while it is 4096 events behind, nothing more is leased. In the
	// end Run waits 5 s at most for it to hear the rest.
	Observer func(Event)

	// Logger gets panics of handlers, with their stack, lost leases, stuck handlers, what
	// goes wrong between worker and engine, and without OnError failures of handlers and
	// deaths of messages. What happens again and again gets a line at once and then one a
	// minute for each queue, with its count; of deaths, lost leases and stuck handlers the
	// first ten get one. Beyond 32 such things at a time queues share a line. Nothing
	// waits for it: see Config.Logger. Default: the client's logger.
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
