package work

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
)

// errDrained is the cause of a handler's context that the drain has ended.
var errDrained = errors.New("the worker is shutting down and its drain timeout is over")

// drain ends the worker: it releases the line, waits for handlers, and then ends their
// contexts. It sends the last results and returns the error of Run.
func (w *Worker) drain(op string) error {
	w.mu.Lock()
	w.draining = true
	w.progress.Broadcast()
	for _, h := range w.idle {
		close(h.next)
	}
	w.idle = nil
	late := w.now().Add(linePatience) // later than every delivery in line
	w.turn = nil
	for _, h := range w.queues {
		w.giveBackWaiting(h, late)
	}
	w.checkIdle()
	w.mu.Unlock()

	if !duration.Await(w.quiet, w.cfg.DrainTimeout) {
		w.interrupt()
		if !duration.Await(w.quiet, drainGrace) {
			w.leave()
		}
	}
	w.sets.flush(drainGrace)

	w.mu.Lock()
	w.ended = true
	left, cut, failed, broken := w.running+w.queued, w.cut, w.failed, w.broken
	w.mu.Unlock()
	w.kick()
	w.tasks.Wait()
	if !w.events.Flush(drainGrace) {
		w.cfg.Logger.Warn("the observer did not return in time; it gets the remaining events when it does", "events", w.events.Pending())
	}
	if !w.faults.Flush(drainGrace) {
		w.cfg.Logger.Warn("OnError did not return in time; it gets the remaining errors when it does", "errors", w.faults.Pending())
	}
	w.trouble.Flush()
	notify.FlushLog(w.cfg.Logger)

	e := &engine.Error{Op: op, Err: context.DeadlineExceeded}
	switch {
	case broken != nil:
		return calls.Fail(op, engine.Ref{}, broken)
	case left > 0:
		e.Hint = fmt.Sprintf("%d handlers did not return when the drain ended their contexts; their messages come back when their leases lapse", left)
	case cut > 0:
		e.Hint = fmt.Sprintf("%d handlers were interrupted after the drain timeout of %s", cut, w.cfg.DrainTimeout)
	case failed > 0:
		e.Err = engine.ErrUnavailable
		e.Hint = fmt.Sprintf("%d results could not be sent to the engine; these messages are handled again", failed)
	default:
		return nil
	}
	return e
}

// checkIdle closes quiet once the worker drains and nothing is left to run. Called with w.mu
// held.
func (w *Worker) checkIdle() {
	if !w.draining || w.running+w.queued > 0 {
		return
	}
	select {
	case <-w.quiet:
	default:
		close(w.quiet)
	}
}

// leave marks the handlers that still run as stuck.
func (w *Worker) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.deliveries {
		if d.stage >= running {
			d.stick(w.now())
		}
	}
}

// interrupt ends the contexts of running handlers.
func (w *Worker) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.deliveries {
		if d.stage >= running {
			w.cut++
			d.cancel(errDrained)
		}
	}
}
