package tarry

import (
	"fmt"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // of its goroutine, as debug.Stack formats it
}

// Error names the panic value.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// fault holds the arguments of WorkerConfig.OnError.
type fault struct {
	info Info
	err  error
}

// maxFaults is how many faults may wait for OnError before further ones are dropped.
const maxFaults = 1000

// newFaults returns the notifier that calls OnError, and logs how many faults were dropped.
func (w *Worker) newFaults() *teller[fault] {
	var missed atomic.Int64
	return &teller[fault]{
		most: maxFaults,
		miss: func() { missed.Add(1) },
		call: func(f fault) {
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
func (d *delivery) report(err error) {
	if d.w.cfg.OnError == nil {
		return
	}
	info := d.lease.Info
	info.Body = nil // waiting faults are bounded in number, not in bytes
	d.w.faults.add(fault{info, err})
}

// reportFailure reports a failed handler to OnError, or else to the log. A panic is logged
// already, and a claim returns the error to its caller.
func (d *delivery) reportFailure() {
	if d.w.cfg.OnError != nil {
		d.report(d.err)
		return
	}
	if _, panicked := d.err.(*PanicError); !panicked && d.claim == nil {
		d.w.trouble.Note(handlerFailed, d.lease.Queue, d.attrs(d.err)...)
	}
}

// died logs that a message is dead, unless OnError got the reason.
func (w *Worker) died(d *delivery) {
	if w.cfg.OnError == nil && d.claim == nil {
		w.trouble.Note(messageDied, d.lease.Queue, d.attrs(d.err)...)
	}
}

// failed reports whether the handler's failure is why the message is retried or buried.
func (d *delivery) failed() bool {
	return d.err != nil && (d.settle.Do == engine.Retry || d.settle.Do == engine.Bury)
}
