package tarry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Client pushes, finds, changes and leases messages of one engine. It may be used
// by many goroutines. Close it when done.
type Client struct {
	eng     engine.Engine
	caps    engine.Capabilities
	owned   bool // Close closes the engine too
	maxBody int
	log     *slog.Logger
	now     func() time.Time // time.Now

	dispatch *dispatcher
	pushes   *coalescer[engine.Message, engine.PushResult] // nil: the engine wants none
	cancels  *coalescer[engine.Ref, error]

	closed    chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Open opens the engine that a URL names, such as "disk:tarry-data" or "mem:",
// and returns a client of it whose Close closes the engine too. The program must
// import the engine's package.
func Open(ctx context.Context, url string, cfg *Config) (*Client, error) {
	eng, err := engine.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	c := New(eng, cfg)
	c.owned = true
	return c, nil
}

// New returns a client of an engine that is already open. Close leaves the engine
// open.
func New(eng engine.Engine, cfg *Config) *Client {
	caps := eng.Capabilities()
	c := &Client{
		eng:     eng,
		caps:    caps,
		maxBody: cfg.maxBody(caps.MaxBody),
		log:     cfg.logger(),
		now:     time.Now,
		closed:  make(chan struct{}),
	}
	c.dispatch = newDispatcher(eng, caps, c.log)
	if caps.Coalesce > 1 {
		c.pushes = newCoalescer(caps.Coalesce, caps.Lanes, func(m *engine.Message) int { return len(m.Body) }, eng.Push)
		c.cancels = newCoalescer(caps.Coalesce, caps.Lanes, nil, eng.Cancel)
	}
	return c
}

// Capabilities says what the engine can do, and its limits.
func (c *Client) Capabilities() Capabilities { return c.caps }

// MaxBody is the largest body that this client lets pass, in bytes.
func (c *Client) MaxBody() int { return c.maxBody }

// Close ends waiting leases, waits for calls in the background, and closes the
// engine if Open opened it. Workers should have drained before. A second Close
// returns what the first did.
func (c *Client) Close() error {
	c.closeOnce.Do(func() {
		close(c.closed)
		c.dispatch.close()
		if c.pushes != nil {
			c.pushes.wait()
			c.cancels.wait()
		}
		if c.owned {
			c.closeErr = c.eng.Close()
		}
	})
	return c.closeErr
}

// begin refuses calls on a closed client and those whose context is over.
func (c *Client) begin(ctx context.Context, op, queue string) error {
	select {
	case <-c.closed:
		return &Error{Op: op, Queue: queue, Err: ErrClosed, Hint: "the client was closed"}
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
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.Hint = "the outcome is unknown; repeating with the same key is safe"
	}
	return e
}
