package tarry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/dispatch"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/internal/work"
)

// Client pushes, finds, changes and leases messages of one engine. It is safe for
// concurrent use. Close it when done.
type Client struct {
	eng     engine.Engine
	seam    *calls.Engine // the same as eng; nil: eng is prompt and not metered
	meter   *Meter
	caps    engine.Capabilities
	owned   bool // Close closes the engine too
	derived bool // made by On
	maxBody int
	most    int // how many queues all waiting leases together may name
	log     *slog.Logger
	trouble *notify.TroubleLog
	now     func() time.Time // time.Now
	inHand  *work.InHand

	dispatch *dispatch.Dispatcher
	pushes   *calls.Coalescer[engine.Message, engine.PushResult] // nil: the engine does not coalesce
	cancels  *calls.Coalescer[engine.Ref, error]

	middleware []PushMiddleware
	outerPush  PushFunc // innerPush inside all middleware; nil: there is no middleware

	working   sync.WaitGroup // running workers
	workersMu sync.Mutex
	workers   map[*work.Worker]struct{} // nil: no more may start
	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the engine that a URL names, such as "disk:tarry-data" or "mem:",
// and returns a client of it. Close of that client closes the engine too. The
// program must import the engine's package.
func Open(ctx context.Context, url string, cfg *Config) (*Client, error) {
	var opening calls.Leaver // an opener may hang, as an engine may
	late := func(eng engine.Engine) { _ = eng.Close() }
	eng, err := calls.Leaving(ctx, &opening, 0, late, func() (engine.Engine, error) { return engine.Open(ctx, url) })
	if cerr := ctx.Err(); err != nil && cerr != nil && !errors.As(err, new(*Error)) {
		return nil, &Error{Op: "open", Err: cerr, Hint: "the store had not answered by then"}
	}
	if err != nil {
		return nil, calls.Fail("open", Ref{}, err)
	}
	c := New(eng, cfg)
	c.owned = true
	return c, nil
}

// New returns a client of an engine that is already open. Close leaves the engine
// open.
func New(eng engine.Engine, cfg *Config) *Client {
	cfg = cmp.Or(cfg, new(Config))
	caps := eng.Capabilities()
	c := &Client{
		meter:   cfg.Meter,
		maxBody: cfg.maxBody(caps),
		most:    cmp.Or(max(cfg.MaxWaitQueues, 0), DefaultMaxWaitQueues),
		log:     notify.Logger(cmp.Or(cfg.Logger, slog.Default())),
		now:     time.Now,
		workers: make(map[*work.Worker]struct{}),
		inHand:  work.NewInHand(),
	}
	c.trouble = notify.NewTroubleLog(c.log)
	c.use(eng, caps.Prompt, cfg.PushMiddleware)
	if caps.Coalesce > 1 {
		push := eng.Push
		if c.seam != nil {
			push = c.seam.PushOwn
		}
		c.pushes = calls.NewCoalescer(caps.Coalesce, caps.Lanes, func(m *engine.Message) int { return len(m.Body) }, push)
		c.cancels = calls.NewCoalescer(caps.Coalesce, caps.Lanes, nil, c.eng.Cancel)
	}
	return c
}

// use sets the engine of a new client. The calls of a prompt engine are not abandoned.
func (c *Client) use(eng engine.Engine, prompt bool, middleware []PushMiddleware) {
	c.eng, c.caps = eng, eng.Capabilities()
	if !prompt || c.meter != nil {
		c.seam = calls.Wrap(eng, prompt, c.meter.ofCalls())
		c.eng = c.seam
	}
	c.dispatch = dispatch.New(c.eng, c.caps, c.log, c.most)
	c.closed = make(chan struct{})
	c.wrapPushes(middleware)
}

// Capabilities says what the engine can do, and its limits.
func (c *Client) Capabilities() Capabilities { return c.caps }

// Engine returns the client's engine.
func (c *Client) Engine() engine.Engine {
	if c.seam != nil {
		return c.seam.Inner()
	}
	return c.eng
}

// On returns a client with the settings of c for another engine, such as one that runs
// inside a transaction. Its calls are not coalesced. It need not be closed. It runs no
// handlers: Worker.Run and Topic.Claim return ErrUnsupported.
func (c *Client) On(eng engine.Engine) *Client {
	on := &Client{
		derived: true,
		meter:   c.meter,
		maxBody: within(c.maxBody, eng.Capabilities().MaxBody),
		most:    c.most,
		log:     c.log,
		now:     c.now,
		trouble: c.trouble,
		inHand:  c.inHand,
	}
	on.use(eng, true, c.middleware)
	return on
}

// MaxBody returns the largest body that this client accepts, in bytes.
func (c *Client) MaxBody() int { return c.maxBody }

const (
	// closePatience bounds how long Close waits for the engine.
	closePatience = 30 * time.Second
	// leftPatience bounds how long Close waits for abandoned calls, so that leases they
	// still return are released.
	leftPatience = 5 * time.Second
)

// Close first ends the client's workers and claims and waits until they have drained, so that
// no result is lost; their handlers may keep using the client. Each drain takes at most its
// DrainTimeout and the grace after it. Then Close ends waiting leases, fails queued pushes and
// cancels with ErrClosed, and waits for calls in the background. It waits up to 5 s for calls
// that their callers have left, and releases what they still lease. Last it closes the engine,
// if Open opened it. After 30 s without an answer from the engine, Close returns
// ErrUnavailable and finishes in the background. A second Close returns the result of the
// first. A handler must not call Close: it would wait for itself.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		c.endWorkers()
		close(c.closed)
		var err error
		if duration.Returns(func() { err = c.end() }, closePatience) {
			c.closeErr = err
		} else {
			c.closeErr = &Error{Op: "close", Err: ErrUnavailable,
				Hint: fmt.Sprintf("the engine has not answered for %s; what it was doing goes on", closePatience)}
		}
		c.trouble.Flush()
		notify.FlushLog(c.log)
	})
	return c.closeErr
}

// runsHandlers refuses to run handlers on a client made by On.
func (c *Client) runsHandlers(op, queue string) error {
	if !c.derived {
		return nil
	}
	return &Error{Op: op, Queue: queue, Err: ErrUnsupported, Hint: "a client made by On runs no handlers; use the client that it was made from"}
}

// enlist registers a worker that is about to run. It returns false when the client is closing.
func (c *Client) enlist(w *work.Worker) bool {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	if c.workers == nil {
		return false
	}
	c.workers[w] = struct{}{}
	c.working.Add(1)
	return true
}

// dismiss unregisters a worker that has ended.
func (c *Client) dismiss(w *work.Worker) {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	delete(c.workers, w)
	c.working.Done()
}

// Running returns the queues of the client's workers that run, by the name of the worker.
func (c *Client) Running() map[string][]string {
	c.workersMu.Lock()
	defer c.workersMu.Unlock()
	running := make(map[string][]string)
	for w := range c.workers {
		name, queues := w.Serves()
		running[name] = append(running[name], queues...)
	}
	return running
}

// endWorkers ends all workers and waits for them.
func (c *Client) endWorkers() {
	c.workersMu.Lock()
	workers := c.workers
	c.workers = nil
	for w := range workers {
		w.Stop(errClosed("work", ""))
	}
	c.workersMu.Unlock()
	c.working.Wait()
}

func errClosed(op, queue string) error {
	return &Error{Op: op, Queue: queue, Err: ErrClosed, Hint: "the client was closed"}
}

// end waits for calls under way and closes what the client owns.
func (c *Client) end() error {
	c.dispatch.Close()
	if c.pushes != nil {
		c.pushes.Wait()
		c.cancels.Wait()
	}
	if c.seam != nil {
		c.seam.Wait(leftPatience)
	}
	if c.owned {
		return c.eng.Close()
	}
	return nil
}

// begin rejects calls on a closed client and calls with an ended context.
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

// operation is a call that only some engines have.
type operation struct {
	op, queue string
	can       bool          // the engine says that it has the call
	what      string        // what an engine without it lacks; "": op
	invalid   error         // what is wrong with the arguments
	metered   string        // its name in Meter.Called; "": op
	patience  time.Duration // as for calls.Leaving
}

// operate makes a call of the optional interface I.
func operate[I, T any](ctx context.Context, c *Client, o operation, call func(I) (T, error)) (out T, err error) {
	eng, ok := c.Engine().(I)
	able := c.able(ok && o.can, o.op, o.queue, cmp.Or(o.what, o.op))
	if err := cmp.Or(c.begin(ctx, o.op, o.queue), o.invalid, able); err != nil {
		return out, err
	}
	out, err = calls.Through(ctx, c.seam, cmp.Or(o.metered, o.op), o.patience, nil, func() (T, error) { return call(eng) })
	return out, calls.Fail(o.op, Ref{Queue: o.queue}, err)
}

// able returns ErrUnsupported unless can is true. what names the missing ability.
func (c *Client) able(can bool, op, queue, what string) error {
	if can {
		return nil
	}
	return &Error{Op: op, Queue: queue, Err: ErrUnsupported, Hint: "the engine " + c.caps.Name + " has no " + what}
}

// ableFor returns ErrUnsupported for leases of other processes that the engine does not have.
func (c *Client) ableFor(op, queue string, remote bool) error {
	return c.able(c.caps.RemoteLeases || !remote, op, queue, "leases for other processes")
}

// Config sets up a Client. The zero value, and a nil Config, work.
type Config struct {
	// MaxBody bounds the body of a pushed message, in bytes. Default 1 MiB, or the server's
	// limit for a remote engine. The engine's own limit applies as well.
	MaxBody int

	// MaxWaitQueues bounds the queue names of all waiting leases together, and so the
	// memory that waiting takes: about 300 bytes and the name for each. A queue counts once
	// for each lease that names it. A Leaser counts as long as it is open. Workers do not
	// count. A lease over the limit fails with ErrLimit, unless it names at most 16 queues.
	// Default 250,000.
	MaxWaitQueues int

	// PushMiddleware wraps the calls that push, the first outermost. For handlers see
	// WorkerConfig.Middleware. Default: none.
	PushMiddleware []PushMiddleware

	// Logger gets what no caller sees: what workers cannot handle (see WorkerConfig.Logger),
	// and failed engine calls in the background. A goroutine of its own writes to it. While
	// 1000 lines wait for a slow logger, further lines are dropped and counted.
	// slog.DiscardHandler turns it off. Default: slog.Default at the time the client is made.
	Logger *slog.Logger

	// Meter receives what the client does, for metrics; see package tarryprom. Default:
	// none.
	Meter *Meter
}

// maxBody returns the largest body for an engine. The default for a remote engine is the
// server's limit.
func (cfg *Config) maxBody(caps engine.Capabilities) int {
	servers := 0
	if caps.LeaseWait {
		servers = caps.MaxBody
	}
	return within(cmp.Or(max(cfg.MaxBody, 0), servers, DefaultMaxBody), caps.MaxBody)
}

// within returns the smaller of limit and the engine's own limit; engines is 0 if the engine
// has none.
func within(limit, engines int) int {
	if engines > 0 {
		return min(limit, engines)
	}
	return limit
}
