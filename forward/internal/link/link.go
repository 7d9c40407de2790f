// Package link holds the one connection of a target, made when it is first needed and
// anew after it was given up, and lets Sends in until the target is closed.
package link

import (
	"context"
	"sync"
	"time"

	"github.com/tarryhq/tarry"
)

// A Link is the way to a target, over a connection of type C. Make it with New. Its
// methods may be called from many goroutines.
type Link[C comparable] struct {
	dial    func(context.Context) (C, error)
	hangUp  func(C)
	timeout time.Duration
	dialing context.Context // ends with Close
	stop    context.CancelFunc

	mu     sync.Mutex
	last   *dialled[C] // nil: none, or given up
	closed bool
	under  sync.WaitGroup // Sends, dials, and connections being hung up
}

// dialled is a connection, made or being made.
type dialled[C comparable] struct {
	done chan struct{} // closed when conn or err is set
	conn C
	err  error
}

// New returns a link that has no connection yet. dial makes one, within the timeout; hangUp
// ends one that was given up or is left at the end. timeout also bounds each Send.
func New[C comparable](timeout time.Duration, dial func(context.Context) (C, error), hangUp func(C)) *Link[C] {
	l := &Link[C]{dial: dial, hangUp: hangUp, timeout: timeout}
	l.dialing, l.stop = context.WithCancel(context.Background())
	return l
}

// Send calls send with the connection, which it makes first if there is none. It fails
// with tarry.ErrClosed after Close. A dial goes on when who waits for it leaves.
func (l *Link[C]) Send(ctx context.Context, send func(context.Context, C) error) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return Fault(tarry.ErrClosed, "the target was closed")
	}
	l.under.Add(1)
	l.mu.Unlock()
	defer l.under.Done()
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	d := l.connection()
	select {
	case <-d.done:
	default:
		select {
		case <-d.done:
		case <-ctx.Done():
			return Fault(ctx.Err(), "no connection came about in time; it was not sent")
		}
	}
	if d.err != nil {
		return d.err
	}
	return send(ctx, d.conn)
}

// connection returns the connection, or that which is being made.
func (l *Link[C]) connection() *dialled[C] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		d := &dialled[C]{done: make(chan struct{})}
		l.last = d
		l.under.Go(func() { l.connect(d) })
	}
	return l.last
}

func (l *Link[C]) connect(d *dialled[C]) {
	ctx, cancel := context.WithTimeout(l.dialing, l.timeout)
	defer cancel()
	d.conn, d.err = l.dial(ctx)
	if d.err != nil {
		l.mu.Lock()
		l.last = nil // the next Send dials again
		l.mu.Unlock()
	}
	close(d.done)
}

// GiveUp hangs up a connection that has proven bad, if it is still the link's: the next
// Send makes another.
func (l *Link[C]) GiveUp(conn C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.last; d != nil && !l.closed {
		select {
		case <-d.done:
			if d.conn == conn {
				l.last = nil
				l.under.Go(func() { l.hangUp(conn) })
			}
		default: // being made
		}
	}
}

// Close lets no more Sends in, waits for those under way, and hangs up.
func (l *Link[C]) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.under.Wait()
	l.stop()
	l.mu.Lock()
	d := l.last
	l.last = nil
	l.mu.Unlock()
	if d != nil && d.err == nil {
		l.hangUp(d.conn)
	}
	return nil
}

// Fault is the error of a Send: what went wrong and what to do about it. A password must
// be in neither.
func Fault(err error, hint string) error {
	return &tarry.Error{Op: "send", Err: err, Hint: hint}
}

// The hint of an error that leaves open whether the target has the message.
const Unknown = "it is not known whether the target has it; it will be sent again"
