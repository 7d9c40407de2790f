package work

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// extension is a handler's request that its lease last longer.
type extension struct {
	by     time.Duration
	answer chan<- error // buffered
}

// errHandlerReturned is the cause of a handler's context after that.
var errHandlerReturned = fmt.Errorf("%w: its handler has returned", engine.ErrLeaseLost)

// Extend passes the request to the keeper. Only the keeper extends leases, so that no renewal
// under way undoes a longer one.
func (d *Delivery) Extend(ctx context.Context, by time.Duration) error {
	w := d.w
	if !w.cfg.Caps.Extend {
		return &engine.Error{Op: "extend", Queue: d.lease.Queue, Err: engine.ErrUnsupported, Hint: "the engine " + w.cfg.Caps.Name + " has no extension of leases"}
	}
	answer := make(chan error, 1)
	w.mu.Lock()
	handler := d.ctx
	err := d.held(w.now())
	if err == nil {
		err = context.Cause(handler)
	}
	if err != nil || d.term.endless() {
		w.mu.Unlock()
		return err
	}
	d.extensions = append(d.extensions, extension{by, answer})
	w.lookAt(d, w.now())
	w.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-handler.Done():
		return context.Cause(handler)
	case <-ctx.Done():
		if handler.Err() != nil { // ctx derives from it
			return context.Cause(handler)
		}
		return ctx.Err()
	}
}

// answerExtensions answers the extensions that have no answer yet.
func answerExtensions(extensions []extension, err error) {
	for _, x := range extensions {
		select {
		case x.answer <- err:
		default:
		}
	}
}

// Deadline returns when the lease ends unless it is renewed; zero: it has no end.
func (d *Delivery) Deadline() time.Time {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.term.endless() {
		return time.Time{}
	}
	return d.term.end()
}

// Lease returns the lease.
func (d *Delivery) Lease() *engine.Lease { return &d.lease }

// Token returns the lease's token, with which the handler may settle the message itself.
func (d *Delivery) Token() string {
	d.tokenOut.Store(true)
	return d.lease.Token
}

// Drop notes that a guard has dropped the message.
func (d *Delivery) Drop() { d.named = Dropped }
