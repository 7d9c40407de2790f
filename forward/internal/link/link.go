// Package link manages the single connection of a target. It dials when needed, again after
// a broken connection, and accepts Sends until the target is closed.
package link

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
)

// A Link is a target's connection of type C, made by New. It is safe for concurrent use.
type Link[C comparable] struct {
	dial    func(context.Context) (C, error)
	hangUp  func(C)
	timeout time.Duration
	dialCtx context.Context // cancelled by Close
	stop    context.CancelFunc

	mu      sync.Mutex
	current *dialled[C] // nil: none, or closed
	closed  bool
	active  sync.WaitGroup // Sends, dials, and connections being closed
}

// dialled is a connection, made or being made.
type dialled[C comparable] struct {
	done chan struct{} // closed when conn or err is set
	conn C
	err  error
}

// New returns a link without a connection. dial makes one; timeout bounds each dial and each
// Send. hangUp closes a connection.
func New[C comparable](timeout time.Duration, dial func(context.Context) (C, error), hangUp func(C)) *Link[C] {
	l := &Link[C]{dial: dial, hangUp: hangUp, timeout: timeout}
	l.dialCtx, l.stop = context.WithCancel(context.Background())
	return l
}

// Send calls send with the connection, within the timeout, and dials first if there is none.
// It fails with tarry.ErrClosed after Close. A dial continues if the Send that waits for it
// ends.
func (l *Link[C]) Send(ctx context.Context, send func(context.Context, C) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.Use(ctx, send)
}

// Use is Send without a timeout.
func (l *Link[C]) Use(ctx context.Context, send func(context.Context, C) error) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return Fault(tarry.ErrClosed, "the target was closed")
	}
	l.active.Add(1)
	l.mu.Unlock()
	defer l.active.Done()
	d := l.connection()
	select {
	case <-d.done:
	case <-ctx.Done():
		return Fault(ctx.Err(), "no connection was made in time; the message was not sent")
	}
	if d.err != nil {
		return d.err
	}
	return send(ctx, d.conn)
}

// connection returns the connection, or the one being made.
func (l *Link[C]) connection() *dialled[C] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		d := &dialled[C]{done: make(chan struct{})}
		l.current = d
		l.active.Go(func() { l.connect(d) })
	}
	return l.current
}

func (l *Link[C]) connect(d *dialled[C]) {
	ctx, cancel := context.WithTimeout(l.dialCtx, l.timeout)
	defer cancel()
	d.conn, d.err = l.dial(ctx)
	if d.err != nil {
		l.mu.Lock()
		l.current = nil // the next Send dials again
		l.mu.Unlock()
	}
	close(d.done)
}

// GiveUp closes a broken connection if it is still the link's. The next Send dials again.
func (l *Link[C]) GiveUp(conn C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.current; d != nil && !l.closed {
		select {
		case <-d.done:
			if d.conn == conn {
				l.current = nil
				l.active.Go(func() { l.hangUp(conn) })
			}
		default: // being made
		}
	}
}

// Close refuses further Sends, waits for those in progress, and closes the connection.
func (l *Link[C]) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.active.Wait()
	l.stop()
	l.mu.Lock()
	d := l.current
	l.current = nil
	l.mu.Unlock()
	if d != nil && d.err == nil {
		l.hangUp(d.conn)
	}
	return nil
}

// Fault returns the error of a Send: the cause and a hint. Neither may contain a password.
func Fault(err error, hint string) error {
	return &tarry.Error{Op: "send", Err: err, Hint: hint}
}

// Unknown is the hint of an error after which the target may or may not have the message.
const Unknown = "the target may or may not have it; it will be sent again"

const contentType = "Content-Type"

// ContentType returns the content type to send: that of the headers of o, else the
// message's.
func ContentType(m *tarry.Message[[]byte], o *forward.Options) string {
	for _, h := range o.Headers {
		if IsContentType(h.Name) {
			return h.Value
		}
	}
	return m.ContentType
}

// IsContentType reports whether a header is the content type, which is sent separately.
func IsContentType(name string) bool { return strings.EqualFold(name, contentType) }

// IsToken reports whether HTTP allows the name for a header.
func IsToken(name string) bool {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"
	return name != "" && strings.Trim(name, known) == ""
}

// Options completes the options of a target that cannot sign. what names the target.
func Options(o *forward.Options, what string) (*forward.Options, error) {
	full, err := o.Complete()
	if err == nil && len(full.Secrets) > 0 {
		err = Invalid("%s takes no secret; only webhooks are signed", what)
	}
	return full, err
}

// Invalid returns the error of a configuration. The text says what is wrong or what to do.
func Invalid(format string, args ...any) error {
	return &tarry.Error{Op: "open target", Err: tarry.ErrInvalid, Hint: fmt.Sprintf(format, args...)}
}

// Register registers a kind of target under URL schemes: parse turns a URL into a
// configuration, and open turns that into a target.
func Register[C any, T forward.Target](parse func(*url.URL, *forward.Options) (*C, error), open func(C, *forward.Options) (T, error), schemes ...string) {
	for _, scheme := range schemes {
		forward.Register(scheme, func(u *url.URL, o *forward.Options) (forward.Target, error) {
			cfg, err := parse(u, o)
			if err != nil {
				return nil, err
			}
			target, err := open(*cfg, o)
			if err != nil {
				return nil, err
			}
			return target, nil
		})
	}
}
