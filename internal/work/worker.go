// Package work handles the messages that a worker leases: it runs their handlers, renews
// their leases and settles their results.
package work

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/notify"
)

// Worker handles messages; see tarry.Worker. Make one with New, add queues with Register,
// then call Start and Run.
//
// The path of a message: the dispatcher leases as many messages as there are free slots,
// plus those that handlers are likely to finish meanwhile, and delivers them (deliver). They
// wait in line until a runner takes them, runs the handler and frees the slot (work,
// finish). The settler sends results to the engine in batches. One goroutine renews all
// leases (keep). None of them waits for the user's observer or log, which have goroutines of
// their own (package notify).
//
//	deliver ──▶ work ──▶ finish ──▶ settler ──▶ settled
//	               ▲
//	             keep: renews, and cancels what is lost
//
// w.mu guards the deliveries; it is never held across a call of the engine, the dispatcher
// or user code.
type Worker struct {
	cfg   Config
	now   func() time.Time
	sets  *settler
	base  context.Context // parent of handlers' contexts: Run's without its end, or a claim's
	tasks sync.WaitGroup  // the keeper and its calls

	room dispatch.Room // written with mu held

	mu           sync.Mutex
	ran          bool
	queues       map[string]*Handling
	deliveries   deliveries
	idle         []*runner       // runners without work
	waking       bool            // a woken runner has not yet checked the line
	running      int             // deliveries that hold slots
	queued       int             // deliveries not started
	turn         fifo[*Handling] // those with a delivery in line and a free slot
	freedPending bool            // the dispatcher has not been told of freed slots: the line may take them
	pace         pace
	unconfirmed  int        // results that the engine has not confirmed yet
	confirmed    int        // results that the engine has confirmed, or that were given up
	progress     *sync.Cond // on mu: confirmed has grown, or the worker drains
	draining     bool
	quiet        chan struct{} // closed when draining and nothing runs
	broken       error         // why the worker must end
	stopped      chan struct{} // closed when broken is set
	cut          int           // handlers interrupted by the drain
	failed       int           // results that could not be sent

	keeperWakes time.Time     // when the keeper wakes next
	lineBy      time.Time     // when it checks the lines next
	checks      int           // deliveries that the keeper has checked
	wake        chan struct{} // holds a token to wake the keeper
	ended       bool          // the keeper must end

	events  notify.Notifier[Event]  // to the observer
	faults  *notify.Notifier[fault] // to OnError
	trouble *notify.TroubleLog
	held    atomic.Bool // leasing has stopped because the observer is behind
}

// maxUnconfirmed bounds the results that the engine has not confirmed, so that a slow
// engine slows the handlers down instead of filling memory.
const maxUnconfirmed = 4096

// drainGrace bounds the wait for handlers after the drain has ended their contexts, and for
// the last results.
const drainGrace = 5 * time.Second

// Config sets up a Worker. Trouble, LeaseTTR, Retry and the callbacks except Panicked may be
// zero; the rest must be set.
type Config struct {
	Engine   engine.Engine
	Caps     engine.Capabilities
	Dispatch *dispatch.Dispatcher
	InHand   *InHand
	Now      func() time.Time
	Logger   *slog.Logger
	Trouble  *notify.TroubleLog // nil: one of its own, on Logger

	Concurrency  int
	LeaseTTR     time.Duration // 0: each message's own
	Name         string        // of the worker
	Also         string        // a queue that it serves by other means; "": none
	DrainTimeout time.Duration
	Retry        Retry

	Panicked func(value any, stack []byte) error // returns the error of a handler that panicked
	OnError  func(engine.Info, error)
	Observer func(Event)
	Handled  func([]Event)                              // gets at once what the observer gets, except Started
	Began    func(queue string, lateness time.Duration) // called before each handler
}

// New returns a worker.
func New(cfg Config) *Worker {
	w := &Worker{
		cfg:         cfg,
		now:         cfg.Now,
		queues:      make(map[string]*Handling),
		quiet:       make(chan struct{}),
		stopped:     make(chan struct{}),
		wake:        make(chan struct{}, 1),
		keeperWakes: never,
		lineBy:      never,
		trouble:     cmp.Or(cfg.Trouble, notify.NewTroubleLog(cfg.Logger)),
	}
	w.progress = sync.NewCond(&w.mu)
	w.events.Call, w.events.Called = w.tell, w.observerReturned
	w.faults = w.newFaults()
	w.sets = newSettler(&cfg, &w.room, w.settled)
	return w
}

// Register adds a queue's handling.
func (w *Worker) Register(h *Handling) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		panic("tarry: Handle was called after Run, for queue " + h.Queue)
	}
	if w.queues[h.Queue] != nil {
		panic("tarry: Handle was called twice for queue " + h.Queue)
	}
	w.queues[h.Queue] = h
}

// Run handles messages until ctx ends or the worker is stopped, and then drains. Start must
// have been called.
func (w *Worker) Run(ctx context.Context, op string) error {
	w.tasks.Go(w.keep)
	leave := w.cfg.Dispatch.Subscribe(&dispatch.Subscription{
		Queues:  slices.Sorted(maps.Keys(w.queues)),
		TTR:     w.cfg.LeaseTTR,
		Worker:  w.cfg.Name,
		Room:    &w.room,
		Deliver: w.deliver,
		Fail:    w.fail,
		Noted:   w.noted,
	})
	select {
	case <-ctx.Done():
	case <-w.stopped:
	}
	leave(drainGrace)
	return w.drain(op)
}

// Serves returns the worker's name and its queues, sorted.
func (w *Worker) Serves() (name string, queues []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queues = slices.Sorted(maps.Keys(w.queues))
	if w.cfg.Also != "" {
		queues = append(queues, w.cfg.Also)
	}
	return w.cfg.Name, queues
}

// Start checks the queues, and prepares Run. A worker starts once.
func (w *Worker) Start(ctx context.Context, op string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ran:
		return engine.Invalid(op, engine.Ref{}, "a worker runs once; make a new one")
	case w.queues[w.cfg.Also] != nil:
		return engine.Invalid(op, engine.Ref{Queue: w.cfg.Also}, "the queue is for schedules; handle the queues that they push to")
	case len(w.queues) == 0 && w.cfg.Also == "":
		return engine.Invalid(op, engine.Ref{}, "no handler is registered; call Handle before Run")
	}
	w.room.Of = make(map[string]*atomic.Int64)
	for q, h := range w.queues {
		if err := engine.CheckQueue(op, q); err != nil {
			return err
		}
		if h.Slots > 0 {
			h.free.Store(int64(h.Slots))
			w.room.Of[q] = &h.free
		}
	}
	w.ran = true
	w.base = context.WithoutCancel(ctx)
	if life, has := ctx.Value(lifeKey{}).(context.Context); has {
		w.base = life
	}
	w.updateRoom()
	return nil
}

type lifeKey struct{}

// WithLife returns a context for Run. The contexts of handlers then end with life at the latest,
// for the same cause.
func WithLife(ctx, life context.Context) context.Context {
	return context.WithValue(ctx, lifeKey{}, life)
}

// fail is called by the dispatcher when the engine could not be asked. The dispatcher tries
// again, unless the engine is closed.
func (w *Worker) fail(err error) {
	w.observe(Event{Kind: EngineFailed, Count: 1, Err: err})
	if errors.Is(err, engine.ErrClosed) {
		w.Stop(err)
	}
}

// Stop makes the worker drain and end with err.
func (w *Worker) Stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(err)
}

// end is Stop. Called with w.mu held.
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
		w.trouble.NoteMany(messagesLapsed, queue, died, "queue", queue)
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

// SetClock makes the worker read another clock, for tests.
func (w *Worker) SetClock(now func() time.Time) { w.now = now }

// Holds is a worker's counts, for tests. All but Looks are zero after a drain.
type Holds struct {
	Running, Queued, Unconfirmed, Idle int
	Kept, Turn, Waking                 bool
	Handlings                          int // the sum over all Handlings of running, queued and in line
	Looks                              int // deliveries that the keeper has checked
}

// Holds returns what the worker holds.
func (w *Worker) Holds() Holds {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := Holds{
		Running: w.running, Queued: w.queued, Unconfirmed: w.unconfirmed, Idle: len(w.idle),
		Kept: len(w.deliveries) > 0, Turn: len(w.turn) > 0, Waking: w.waking, Looks: w.checks,
	}
	for _, q := range w.queues {
		h.Handlings += q.running + q.queued + len(q.line)
	}
	return h
}
