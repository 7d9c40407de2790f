package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// A worker leases ahead: what it has leased and no hand has begun stands in line, so
// that hands go from one message to the next while the engine is asked for more. How
// much is leased ahead follows what the handlers finish while an answer is on its
// way (pace); what could not be begun soon all the same goes back to the engine.
//
// The line is one of each handling, and a turn of the handlings that have one.

// line is the deliveries of a handling that wait for a hand, first come first served.
// Guarded by Worker.mu.
type line struct{ first, last *delivery }

func (l *line) add(d *delivery) {
	if l.last == nil {
		l.first = d
	} else {
		l.last.behind = d
	}
	l.last = d
}

// addFirst has a delivery begun before all others: one that is isolated, lest it wait for a
// hand while another kills the process.
func (l *line) addFirst(d *delivery) {
	d.behind, l.first = l.first, d
	if l.last == nil {
		l.last = d
	}
}

func (l *line) take() *delivery {
	d := l.first
	if l.first = d.behind; l.first == nil {
		l.last = nil
	}
	d.behind = nil
	return d
}

// turn is the handlings that have somebody in line and a slot. Guarded by Worker.mu.
type turn struct{ first, last *handling }

func (t *turn) add(h *handling) {
	if h.inTurn || h.line.first == nil || h.slots > 0 && h.running >= h.slots {
		return
	}
	h.inTurn = true
	if t.last == nil {
		t.first = h
	} else {
		t.last.behind = h
	}
	t.last = h
}

func (t *turn) take() *handling {
	h := t.first
	if t.first = h.behind; t.first == nil {
		t.last = nil
	}
	h.behind, h.inTurn = nil, false
	return h
}

// await has a delivery wait for a hand, unless none will come. Called with w.mu held.
func (w *Worker) await(d *delivery, now time.Time) {
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

// suspect reports whether the message may be one that kills its process: it has lapsed, and was
// granted alone.
func (d *delivery) suspect() bool {
	return d.lease.LastError == engine.Lapsed && d.lease.Alone(d.lease.Attempt-1)
}

// awaitSaid waits until the engine has confirmed the results there are now, or the worker is cut
// off. Should the process die afterwards, none of these is lost.
func (w *Worker) awaitSaid() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for all := w.said + w.unsaid; w.said < all && w.base.Err() == nil; {
		if w.more == nil {
			w.more = make(chan struct{})
		}
		more := w.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-w.base.Done():
		}
		w.mu.Lock()
	}
}

// heed has the keeper look after those in line, unless there is but one, whom a hand
// is about to take. Called with w.mu held.
func (w *Worker) heed(now time.Time) {
	if w.queued > 1 || w.queued == 1 && w.running >= w.cfg.Concurrency {
		w.lineWithin(now.Add(linePatience))
	}
}

// next takes a delivery from the line, whose slot it takes; nil: none can be begun.
// Called with w.mu held.
func (w *Worker) next() *delivery {
	if w.turn.first == nil || w.draining || w.running >= w.cfg.Concurrency {
		return nil
	}
	h := w.turn.take()
	if h.line.first == nil { // what waited was given back
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

// giveBack releases a delivery that is not in line any more and was not begun. Called
// with w.mu held.
func (w *Worker) giveBack(d *delivery) {
	w.queued--
	d.h.queued--
	w.kept.remove(d)
	d.h.free.Add(1)
	if d.hold != lost {
		d.settle = release(d)
		w.unsaid++
		w.sets.add(d)
	}
	w.tellRoom()
	w.checkIdle()
}

// giveBackWaiting releases what was to be begun by t.
func (w *Worker) giveBackWaiting(h *handling, t time.Time) {
	for h.line.first != nil && !t.Before(h.line.first.begin) {
		w.giveBack(h.line.take())
	}
}

// lineWithin makes the keeper look at the line at t or earlier. Called with w.mu held.
func (w *Worker) lineWithin(t time.Time) {
	if t.Before(w.lineBy) {
		w.lineBy = t
		w.lookBy(t)
	}
}

// tendLines gives back what has waited in line for too long. Called with w.mu held.
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

// pace is how fast a worker's handlers are beside the engine. Guarded by Worker.mu.
type pace struct {
	since time.Time     // when handlers began to count
	done  int           // handlers finished since then
	busy  time.Duration // how long they ran, together
	rate  float64       // of them a second
	trip  time.Duration
}

const (
	// paceWindow is over how long handlers are counted at least.
	paceWindow = 10 * time.Millisecond
	// leadLeast and leadMost bound for how long a worker leases ahead; leadMessages
	// bounds how many messages.
	leadLeast    = time.Millisecond
	leadMost     = 50 * time.Millisecond
	leadMessages = MaxLease
	// linePatience is how long a message may wait in line before it is given back.
	linePatience = 100 * time.Millisecond
)

// finished notes a handler that ran so long.
func (p *pace) finished(took time.Duration) {
	p.done++
	p.busy += took
}

// answered notes an answer of the engine that was asked at sent, by a worker of so many
// slots.
func (p *pace) answered(now, sent time.Time, slots int) {
	// Waiting for something to fall due is part of some trips, so short ones count
	// for more.
	if trip := max(0, now.Sub(sent)); trip < p.trip {
		p.trip = (p.trip + trip) / 2
	} else {
		p.trip += (min(trip, leadMost) - p.trip) / 8
	}
	if took := now.Sub(p.since); took >= paceWindow {
		rate := float64(p.done) / took.Seconds()
		if p.busy > 0 { // slow ones may have ended together
			rate = min(rate, float64(slots)*float64(p.done)/p.busy.Seconds())
		}
		p.rate = (p.rate + rate) / 2
		p.since, p.done, p.busy = now, 0, 0
	}
}

// lead is how many messages to lease ahead: what is finished during one and a half
// trips.
func (p *pace) lead() int {
	span := min(max(p.trip*3/2, leadLeast), leadMost)
	return min(int(p.rate*span.Seconds()), leadMessages)
}
