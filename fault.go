package tarry

import (
	"fmt"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// PanicError is the error of a handler that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of its goroutine, as debug.Stack writes it
}

// Error says what the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// fault is what WorkerConfig.OnError is told.
type fault struct {
	info Info
	err  error
}

// maxFaults is how many faults OnError may be behind before it misses some.
const maxFaults = 1000

// faults tells OnError, and the log how many it has missed.
func (w *Worker) newFaults() *teller[fault] {
	var missed atomic.Int64
	return &teller[fault]{
		most: maxFaults,
		miss: func() { missed.Add(1) },
		tell: func(f fault) {
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

// report tells OnError, if there is one, without waiting for it.
func (d *delivery) report(err error) {
	if d.w.cfg.OnError == nil {
		return
	}
	info := d.lease.Info
	info.Body = nil // what waits to be told is bounded in number, not in bytes
	d.w.faults.add(fault{info, err})
}

// reportFailure tells OnError of a failed handler, or else the log, unless that has the
// panic already or whoever claimed the message gets the error.
func (d *delivery) reportFailure() {
	if d.w.cfg.OnError != nil {
		d.report(d.err)
		return
	}
	if _, panicked := d.err.(*PanicError); !panicked && d.one == nil {
		d.w.trouble.Note(handlerFailed, d.lease.Queue, d.attrs(d.err)...)
	}
}

// died tells the log that a message is dead, unless OnError has heard why.
func (w *Worker) died(d *delivery) {
	if w.cfg.OnError == nil && d.one == nil {
		w.trouble.Note(messageDied, d.lease.Queue, d.attrs(d.err)...)
	}
}

// failed reports whether it is for a failure that the message goes back or dies.
func (d *delivery) failed() bool {
	return d.err != nil && (d.settle.Do == engine.Retry || d.settle.Do == engine.Bury)
}
