package work

import (
	"errors"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/notify"
)

// fault holds the arguments of WorkerConfig.OnError.
type fault struct {
	info engine.Info
	err  error
}

// maxFaults is how many faults may wait for OnError before further ones are dropped.
const maxFaults = 1000

// newFaults returns the notifier that calls OnError, and logs how many faults were dropped.
func (w *Worker) newFaults() *notify.Notifier[fault] {
	var missed atomic.Int64
	return &notify.Notifier[fault]{
		Most:   maxFaults,
		Missed: func() { missed.Add(1) },
		Call: func(f fault) {
			defer func() {
				if p := recover(); p != nil {
					w.cfg.Logger.Error("OnError panicked", "panic", p, stack())
				}
			}()
			if n := missed.Swap(0); n > 0 {
				w.cfg.Logger.Warn("OnError was too slow for some errors", "missed", n)
			}
			w.cfg.OnError(f.info, f.err)
		},
	}
}

// report queues a call of OnError, if there is one.
func (d *Delivery) report(err error) {
	if d.w.cfg.OnError == nil {
		return
	}
	info := d.lease.Info
	info.Body = nil // waiting faults are bounded in number, not in bytes
	d.w.faults.Add(fault{info, err})
}

// reportFailure reports a failed handler to OnError, or else to the log. A panic is logged
// already, and a claim returns the error to its caller.
func (d *Delivery) reportFailure() {
	if d.w.cfg.OnError != nil {
		d.report(d.err)
		return
	}
	if !d.panicked && d.claim == nil {
		d.w.trouble.Note(handlerFailed, d.lease.Queue, d.attrs(d.err)...)
	}
}

// died logs that a message is dead, unless OnError or the caller of Claim got the reason.
func (w *Worker) died(d *Delivery) {
	if w.cfg.OnError == nil && d.claim == nil {
		w.trouble.Note(messageDied, d.lease.Queue, d.attrs(d.err)...)
	}
}

// failed reports whether the message is retried or buried because its handler failed.
func (d *Delivery) failed() bool {
	return d.err != nil && (d.settle.Do == engine.Retry || d.settle.Do == engine.Bury)
}

// ErrUnconfirmed means that the outcome of a message is unknown.
var ErrUnconfirmed = errors.New("the result was sent, but its answer was lost, and the lease is over")
