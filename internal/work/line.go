package work

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A worker leases ahead: leased messages wait in line, so that runners go from one to the
// next while the engine is asked for more. How many it leases ahead depends on how many
// handlers finish during a call (pace). Messages that cannot start soon are released.
//
// Each handling has its own line; the turn orders the handlings with lines that are not empty.

// fifo is a queue. The zero fifo is empty.
type fifo[T any] []T

func (q *fifo[T]) add(x T) { *q = append(*q, x) }

// take removes the first of several, or the only one.
func (q *fifo[T]) take() T {
	var none T
	all := *q
	x := all[0]
	all[0] = none
	if *q = all[1:]; len(*q) == 0 {
		*q = all[:0] // keeps the memory
	}
	return x
}

// addTurn adds a handling to the turn if it has a delivery in line and a free slot. Called with
// w.mu held.
func (w *Worker) addTurn(h *Handling) {
	if !h.inTurn && len(h.line) > 0 && (h.Slots == 0 || h.running < h.Slots) {
		h.inTurn = true
		w.turn.add(h)
	}
}

// await puts a delivery in line, or releases it when the worker drains. Called with w.mu
// held.
func (w *Worker) await(d *Delivery, now time.Time) {
	if w.draining {
		w.giveBack(d)
		return
	}
	d.begin = now.Add(linePatience)
	if d.suspect() {
		// Else it would wait for a runner while another one kills the process.
		d.h.line = slices.Insert(d.h.line, 0, d)
	} else {
		d.h.line.add(d)
	}
	w.addTurn(d.h)
}

// suspect reports whether the message may have killed its process: its last lease lapsed,
// and it had been leased alone.
func (d *Delivery) suspect() bool {
	return d.lease.LastError == engine.Lapsed && d.lease.Alone(d.lease.Attempt-1)
}

// awaitConfirmed waits until the engine has confirmed all results so far, or they were given
// up, so that none is lost if the process dies next. A drain ends the wait.
func (w *Worker) awaitConfirmed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for all := w.confirmed + w.unconfirmed; w.confirmed < all && !w.draining; {
		w.progress.Wait()
	}
}

// watchLines makes the keeper check the lines, unless a runner is about to take the only
// delivery. Called with w.mu held.
func (w *Worker) watchLines(now time.Time) {
	if w.queued > 1 || w.queued == 1 && w.running >= w.cfg.Concurrency {
		w.lineWithin(now.Add(linePatience))
	}
}

// next takes a delivery from a line, and a slot for it; nil: none can start. Called with
// w.mu held.
func (w *Worker) next() *Delivery {
	if len(w.turn) == 0 || w.draining || w.running >= w.cfg.Concurrency {
		return nil
	}
	h := w.turn.take()
	h.inTurn = false
	if len(h.line) == 0 { // the line was released
		return w.next()
	}
	d := h.line.take()
	w.queued--
	w.running++
	h.queued--
	h.running++
	w.addTurn(h)
	return d
}

// giveBack releases a delivery that has left the line without starting. Called with w.mu
// held.
func (w *Worker) giveBack(d *Delivery) {
	w.queued--
	d.h.queued--
	w.deliveries.remove(d)
	d.h.free.Add(1)
	if d.hold != lost {
		d.settle = release(d)
		w.unconfirmed++
		w.sets.add(d)
	}
	w.updateRoom()
	w.checkIdle()
}

// giveBackWaiting releases the deliveries in line that should have started by t. Called with
// w.mu held.
func (w *Worker) giveBackWaiting(h *Handling, t time.Time) {
	for len(h.line) > 0 && !t.Before(h.line[0].begin) {
		w.giveBack(h.line.take())
	}
}

// lineWithin makes the keeper check the lines at t or earlier. Called with w.mu held.
func (w *Worker) lineWithin(t time.Time) {
	if t.Before(w.lineBy) {
		w.lineBy = t
		w.lookBy(t)
	}
}

// tendLines releases the deliveries that have waited in line for too long. Called with w.mu
// held.
func (w *Worker) tendLines(now time.Time) {
	if now.Before(w.lineBy) {
		return
	}
	w.lineBy = never
	for _, h := range w.queues {
		if w.giveBackWaiting(h, now); len(h.line) > 0 {
			w.lineWithin(h.line[0].begin)
		}
	}
}

// pace measures how fast handlers are compared with the engine. Guarded by Worker.mu.
type pace struct {
	since time.Time     // start of the current window
	done  int           // handlers finished in it
	busy  time.Duration // their total run time
	rate  float64       // handlers finished a second
	trip  time.Duration // from a request to the engine until its answer
}

const (
	// paceWindow is the shortest window over which handlers are counted.
	paceWindow = 10 * time.Millisecond
	// leadLeast and leadMost bound how far ahead in time a worker leases; leadMessages
	// bounds how many messages.
	leadLeast    = time.Millisecond
	leadMost     = 50 * time.Millisecond
	leadMessages = engine.MaxLease
	// linePatience is how long a message may wait in line before it is released.
	linePatience = 100 * time.Millisecond
)

// finished counts a handler that ran for took.
func (p *pace) finished(took time.Duration) {
	p.done++
	p.busy += took
}

// answered notes the engine's answer to a request sent at sent. slots is the worker's
// concurrency.
func (p *pace) answered(now, sent time.Time, slots int) {
	// Some trips include waiting for a message to fall due, so short ones count for more.
	if trip := max(0, now.Sub(sent)); trip < p.trip {
		p.trip = (p.trip + trip) / 2
	} else {
		p.trip += (min(trip, leadMost) - p.trip) / 8
	}
	if took := now.Sub(p.since); took >= paceWindow {
		rate := float64(p.done) / took.Seconds()
		if p.busy > 0 { // slow handlers may have ended together
			rate = min(rate, float64(slots)*float64(p.done)/p.busy.Seconds())
		}
		p.rate = (p.rate + rate) / 2
		p.since, p.done, p.busy = now, 0, 0
	}
}

// lead returns how many messages to lease ahead: as many as finish during one and a half
// trips.
func (p *pace) lead() int {
	span := min(max(p.trip*3/2, leadLeast), leadMost)
	return min(int(p.rate*span.Seconds()), leadMessages)
}
