package work

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A worker leases ahead: leased messages wait in line, so that runners go from one to the
// next while the engine is asked for more. How many it leases ahead depends on how many
// handlers finish during a call (pace). Messages that cannot start soon are released.
//
// Each handling has its own line; the turn orders the handlings with lines that are not empty.

// line is the FIFO of a handling's deliveries that wait for a runner. Guarded by Worker.mu.
type line struct{ first, last *Delivery }

func (l *line) add(d *Delivery) {
	if l.last == nil {
		l.first = d
	} else {
		l.last.next = d
	}
	l.last = d
}

// addFirst puts a suspect before all others, so that it does not wait for a runner while
// another one kills the process.
func (l *line) addFirst(d *Delivery) {
	d.next, l.first = l.first, d
	if l.last == nil {
		l.last = d
	}
}

func (l *line) take() *Delivery {
	d := l.first
	if l.first = d.next; l.first == nil {
		l.last = nil
	}
	d.next = nil
	return d
}

// turn is the FIFO of handlings that have a delivery in line and a free slot. Guarded by
// Worker.mu.
type turn struct{ first, last *Handling }

func (t *turn) add(h *Handling) {
	if h.inTurn || h.line.first == nil || h.Slots > 0 && h.running >= h.Slots {
		return
	}
	h.inTurn = true
	if t.last == nil {
		t.first = h
	} else {
		t.last.nextInTurn = h
	}
	t.last = h
}

func (t *turn) take() *Handling {
	h := t.first
	if t.first = h.nextInTurn; t.first == nil {
		t.last = nil
	}
	h.nextInTurn, h.inTurn = nil, false
	return h
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
		d.h.line.addFirst(d)
	} else {
		d.h.line.add(d)
	}
	w.turn.add(d.h)
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
	if w.turn.first == nil || w.draining || w.running >= w.cfg.Concurrency {
		return nil
	}
	h := w.turn.take()
	if h.line.first == nil { // the line was released
		return w.next()
	}
	d := h.line.take()
	w.queued--
	w.running++
	h.queued--
	h.running++
	w.turn.add(h)
	return d
}

// giveBack releases a delivery that has left the line without starting. Called with w.mu
// held.
func (w *Worker) giveBack(d *Delivery) {
	w.queued--
	d.h.queued--
	w.agenda.remove(d)
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
	for h.line.first != nil && !t.Before(h.line.first.begin) {
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
		if w.giveBackWaiting(h, now); h.line.first != nil {
			w.lineWithin(h.line.first.begin)
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
