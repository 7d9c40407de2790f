package tarry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/coalesce"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/leave"
	"github.com/tarryhq/tarry/internal/trouble"
)

// Client pushes, finds, changes and leases messages of one engine. It may be used
// by many goroutines. Close it when done.
type Client struct {
	eng     engine.Engine
	seam    *seam // eng, unless that leaves calls by itself and nothing is metered
	meter   *Meter
	caps    engine.Capabilities
	owned   bool // Close closes the engine too
	maxBody int
	most    int // queues of leases that wait
	log     *slog.Logger
	trouble *trouble.Log
	now     func() time.Time // time.Now
	inHand  *inHand

	dispatch *dispatch.Dispatcher
	pushes   *coalesce.Coalescer[engine.Message, engine.PushResult] // nil: the engine wants none
	cancels  *coalesce.Coalescer[engine.Ref, error]

	middleware []PushMiddleware
	wrapped    PushFunc // keep inside all of middleware; nil: there is none

	working   sync.WaitGroup // workers that run
	workersMu sync.Mutex
	workers   map[*Worker]struct{} // nil when no more may begin
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the engine that a URL names, such as "disk:tarry-data" or "mem:",
// and returns a client of it whose Close closes the engine too. The program must
// import the engine's package.
func Open(ctx context.Context, url string, cfg *Config) (*Client, error) {
	var calls leave.Calls // an opener may hang as well as an engine
	defer calls.Close()
	late := func(eng engine.Engine) { _ = eng.Close() }
	eng, err := leaving(ctx, &calls, 0, late, func() (engine.Engine, error) { return engine.Open(ctx, url) })
	var shaped *Error
	if cerr := ctx.Err(); err != nil && cerr != nil && !errors.As(err, &shaped) {
		return nil, &Error{Op: "open", Err: cerr, Hint: "the store had not answered by then"}
	}
	if err != nil {
		return nil, fail("open", Ref{}, err)
	}
	c := New(eng, cfg)
	c.owned = true
	return c, nil
}

// New returns a client of an engine that is already open. Close leaves the engine
// open.
func New(eng engine.Engine, cfg *Config) *Client {
	caps := eng.Capabilities()
	push := eng.Push
	s, meter := (*seam)(nil), cfg.meter()
	if !caps.Prompt || meter != nil {
		s = &seam{eng: eng, prompt: caps.Prompt, meter: meter}
		eng, push = s, s.pushOwn
	}
	c := &Client{
		eng:     eng,
		seam:    s,
		meter:   meter,
		caps:    caps,
		maxBody: cfg.maxBody(caps),
		most:    cfg.maxWaitQueues(),
		log:     cfg.logger(),
		now:     time.Now,
		workers: make(map[*Worker]struct{}),
		inHand:  &inHand{all: make(map[messageID]struct{})},
		closed:  make(chan struct{}),
	}
	c.dispatch = dispatch.New(eng, caps, c.log, c.most)
	c.trouble = trouble.New(c.log)
	if caps.Coalesce > 1 {
		c.pushes = coalesce.New(caps.Coalesce, caps.Lanes, func(m *engine.Message) int { return len(m.Body) }, push)
		c.cancels = coalesce.New(caps.Coalesce, caps.Lanes, nil, eng.Cancel)
	}
	if cfg != nil {
		c.wrapPushes(cfg.PushMiddleware)
	}
	return c
}

// Capabilities says what the engine can do, and its limits.
func (c *Client) Capabilities() Capabilities { return c.caps }

// Engine is the engine behind the client.
func (c *Client) Engine() engine.Engine {
	if c.seam != nil {
		return c.seam.eng
	}
	return c.eng
}

// On returns a client with the settings of c whose calls go straight to another engine,
// such as one whose calls are part of a transaction. No worker runs on it, and it need not
// be closed.
func (c *Client) On(eng engine.Engine) *Client {
	caps := eng.Capabilities()
	var s *seam
	if c.meter != nil {
		s = &seam{eng: eng, prompt: true, meter: c.meter}
		eng = s
	}
	on := &Client{
		eng:      eng,
		seam:     s,
		meter:    c.meter,
		caps:     caps,
		maxBody:  within(c.maxBody, caps.MaxBody),
		log:      c.log,
		now:      c.now,
		trouble:  c.trouble,
		inHand:   c.inHand,
		most:     c.most,
		dispatch: dispatch.New(eng, caps, c.log, c.most),
		closed:   make(chan struct{}),
	}
	on.wrapPushes(c.middleware)
	return on
}

// MaxBody is the largest body that this client lets pass, in bytes.
func (c *Client) MaxBody() int { return c.maxBody }

const (
	// closePatience bounds how long Close waits for the engine.
	closePatience = 30 * time.Second
	// leftPatience bounds how long it waits for calls that their callers have left, so
	// that leases which they still bring are given back.
	leftPatience = 5 * time.Second
)

// Close first ends the client's workers and claims and waits until they have drained, each
// for its DrainTimeout and what comes after it at most, so that no result is lost; their
// handlers may go on using the client. Then it ends waiting leases, and with ErrClosed the
// pushes and cancels that still wait for others before them, waits for calls in the
// background, for those that their callers have left, with what these still lease given
// back, 5 s at most, and closes the engine if Open opened it. For that it waits 30 s at
// most: when the engine has not answered by then it fails with ErrUnavailable, and goes
// on by itself for as long as the engine takes. A second Close returns what the first
// did. A handler must not call it: it would wait for itself.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		c.endWorkers()
		close(c.closed)
		ended := make(chan error, 1)
		go func() { ended <- c.end() }()
		timer := time.NewTimer(closePatience)
		defer timer.Stop()
		select {
		case c.closeErr = <-ended:
		case <-timer.C:
			c.closeErr = &Error{Op: "close", Err: ErrUnavailable,
				Hint: fmt.Sprintf("the engine has not answered for %s; what it was doing goes on", closePatience)}
		}
		c.trouble.Flush()
		flushLog(c.log)
	})
	return c.closeErr
}

// enlist notes that a worker runs, and reports whether it may.
func (c *Client) enlist(w *Worker) bool {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	if c.workers == nil {
		return false
	}
	c.workers[w] = struct{}{}
	c.working.Add(1)
	return true
}

// dismiss notes that a worker has ended.
func (c *Client) dismiss(w *Worker) {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	delete(c.workers, w)
	c.working.Done()
}

// endWorkers ends all workers and waits for them.
func (c *Client) endWorkers() {
	c.workersMu.Lock()
	workers := c.workers
	c.workers = nil
	for w := range workers {
		w.stop(errClosed("work", ""))
	}
	c.workersMu.Unlock()
	c.working.Wait()
}

func errClosed(op, queue string) error {
	return &Error{Op: op, Queue: queue, Err: ErrClosed, Hint: "the client was closed"}
}

// end waits for all that is under way and closes what is the client's.
func (c *Client) end() error {
	c.dispatch.Close()
	if c.pushes != nil {
		c.pushes.Wait()
		c.cancels.Wait()
	}
	if c.seam != nil {
		c.seam.calls.Wait(leftPatience)
		c.seam.calls.Close()
	}
	if c.owned {
		return c.eng.Close()
	}
	return nil
}

// begin refuses calls on a closed client and those whose context is over.
func (c *Client) begin(ctx context.Context, op, queue string) error {
	select {
	case <-c.closed:
		return errClosed(op, queue)
	default:
	}
	if err := ctx.Err(); err != nil {
		return &Error{Op: op, Queue: queue, Err: err}
	}
	return nil
}

// able fails with ErrUnsupported when the engine cannot do what.
func (c *Client) able(can bool, op, queue, what string) error {
	if can {
		return nil
	}
	return &Error{Op: op, Queue: queue, Err: ErrUnsupported, Hint: "the engine " + c.caps.Name + " has no " + what}
}

// overdue is the error of a call that ran on no caller's context, without the deadline
// of that: who has set none must not be told of one.
func overdue(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return coalesce.Overdue(err)
	}
	return err
}

const hintWithdrawn = "nothing was done: it still waited for others before it; repeating it is safe"

// fail gives an error from below its operation and message, once.
func fail(op string, ref Ref, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	e = &Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: err}
	if w := (*coalesce.Withdrawn)(nil); errors.As(err, &w) {
		e.Err, e.Hint = w.Err, hintWithdrawn
	} else if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || err == coalesce.ErrOverdue {
		e.Hint = engine.HintUnknown
	}
	return e
}
