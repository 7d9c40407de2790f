package dispatch

import (
	"container/heap"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// belief is what is known of a queue with subscriptions. It is in one place at a time: in
// the ready list, if it is to be asked; in the parked list, while all its subscriptions
// rest; in a call; in the timed heap, if the time to ask it is known; or nowhere, if only a
// hint can bring news. Guarded by Dispatcher.mu.
type belief struct {
	queue string
	seats chain[Subscription] // in order of arrival

	place    link[belief] // in Dispatcher.ready or Dispatcher.parked
	ready    bool         // to be asked
	parked   bool         // rounds skip it until a turn starts
	busy     bool         // being asked
	hinted   bool         // a hint came during the call
	apart    bool         // asked alone, since the engine was slow with it and no other queue should wait
	held     bool         // more messages are ready, but held back
	cut      bool         // the call under way does not cover all subscriptions
	more     bool         // the last answer left messages that are due
	answered uint64       // the last round with an answer to its call
	reach    int32        // how many subscriptions the next call covers
	fails    int32        // failed calls in a row
	spread   int32        // number of subscriptions that spread
	at       int32        // index in Dispatcher.timed; -1: not there
	wake     moment       // when to ask without a hint

	next int64 // when a message may be due, in milliseconds of the engine's clock; none: unknown

	err error // of the last call

	expired, died int // not reported yet
}

// moment is an instant of our clock, since Dispatcher.epoch; 0: unknown.
type moment time.Duration

// moment converts t, by the monotonic clock.
func (d *Dispatcher) moment(t time.Time) moment { return moment(max(1, t.Sub(d.epoch))) }

func (d *Dispatcher) time(m moment) time.Time { return d.epoch.Add(time.Duration(m)) }

// none is the zero time in milliseconds.
var none = time.Time{}.UnixMilli()

// instant converts milliseconds of the engine's clock.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Bounds on how many subscriptions of a queue one call covers. With thousands waiting, most
// calls bring a message or two, so it starts low and doubles while the engine has more.
const (
	reachMin = 16
	reachMax = engine.MaxLease
)

func newBelief(queue string) *belief {
	b := &belief{queue: queue, at: -1, reach: reachMin, next: none}
	b.place.of = b
	return b
}

// ask puts a queue in the ready list. Called with d.mu held.
func (d *Dispatcher) ask(b *belief) {
	switch {
	case b.busy:
		b.hinted = true
	case !b.ready:
		d.untime(b)
		b.ready = true
		d.ready.add(&b.place)
		b.countSpread(1, 0)
	}
}

// unready removes a queue from the ready list. Called with d.mu held.
func (d *Dispatcher) unready(b *belief) {
	if !b.ready {
		return
	}
	d.unpark(b)
	d.ready.remove(&b.place)
	b.ready = false
	b.countSpread(-1, 0)
}

// countSpread adds ready and busy to the counts of ready and busy queues of the
// subscriptions that spread.
func (b *belief) countSpread(ready, busy int) {
	left := b.spread
	for l := b.seats.first; left > 0; l = l.next {
		s := l.of
		if !s.spreads() {
			continue
		}
		s.readyQueues += ready
		s.queuesInCalls += busy
		if s.readyQueues == 0 && s.isLease() {
			s.answer.extraQueues = 0
		}
		left--
	}
}

// countFailing adds n to the count of failing queues of the subscriptions of a queue.
func (b *belief) countFailing(n int) {
	for l := b.seats.first; l != nil; l = l.next {
		l.of.failing += n
	}
}

// updateHeld records with all subscriptions whether more of a queue is held back.
func (b *belief) updateHeld() {
	for l := b.seats.first; l != nil; l = l.next {
		s := l.of
		switch {
		case !s.isLease() && b.held:
			s.Room.Held.Add(1)
		case !s.isLease():
			s.Room.Held.Add(-1)
		case b.held:
			s.hold(b)
		default:
			delete(s.held, b.queue)
		}
	}
}

// hold records with a Standing if more of a queue is held back.
func (s *Subscription) hold(b *belief) {
	if !b.held || !s.isLease() {
		return
	}
	if s.held == nil {
		s.held = make(map[string]struct{})
	}
	s.held[b.queue] = struct{}{}
}

// untime removes a queue from the timed heap. Called with d.mu held.
func (d *Dispatcher) untime(b *belief) {
	if b.at >= 0 {
		heap.Remove(&d.timed, int(b.at))
	}
}

// place moves a queue out of an answered call to where it belongs. Called with d.mu held.
func (d *Dispatcher) place(b *belief, ask bool) {
	if b.busy {
		b.busy = false
		b.countSpread(0, -1)
	}
	switch {
	case b.seats.first == nil:
		d.forget(b)
	case ask:
		d.ask(b)
	case b.wake != 0:
		heap.Push(&d.timed, b)
	}
}

// forget drops a queue without subscriptions, unless a call for it is under way. Called
// with d.mu held.
func (d *Dispatcher) forget(b *belief) {
	if b.seats.first != nil || b.busy {
		return
	}
	d.unready(b)
	d.untime(b)
	delete(d.queues, b.queue)
}

// learn updates a belief from the engine's answer to a call started at began, and reports
// whether to ask again at once. Called with d.mu held.
func (d *Dispatcher) learn(b *belief, got *engine.Granted, engineNow, began, now time.Time) (again bool) {
	if failed := got.Err != nil; failed != (b.err != nil) {
		if failed {
			b.countFailing(1)
		} else {
			b.countFailing(-1)
		}
	}
	b.wake, b.next, b.err = 0, none, got.Err
	if got.Err != nil {
		b.wake = d.moment(now.Add(FailPause(int(b.fails))))
		b.fails++
		return false
	}
	b.fails = 0
	if b.held != got.Held {
		b.held = got.Held
		b.updateHeld()
	}
	b.next, d.now, d.nowAt = got.NextDue.UnixMilli(), engineNow, now
	if b.more = got.More; b.more {
		d.next = 0 // nothing waits behind a backlog
	}
	b.expired += got.Expired
	b.died += got.Died
	if !got.NextDue.IsZero() {
		b.wake = d.moment(d.localSince(got.NextDue, engineNow, began, now))
	}
	if d.caps.Recheck > 0 {
		if until := d.moment(now.Add(d.caps.Recheck)); b.wake == 0 || until < b.wake {
			b.wake = until
		}
	}
	if b.cut && got.More {
		b.reach = min(2*b.reach, reachMax)
	} else {
		b.reach = max(b.reach/2, reachMin)
	}
	return got.More || b.hinted
}

// The pause after a failed call, doubling.
const (
	failPauseBase = 50 * time.Millisecond
	failPauseMax  = 5 * time.Second
)

// FailPause returns the pause after a failed call that followed fails other failures.
func FailPause(fails int) time.Duration {
	return min(failPauseBase<<min(fails, 10), failPauseMax)
}

// Local converts an instant of the engine's clock into one of ours.
func (d *Dispatcher) Local(t, engineNow, now time.Time) time.Time {
	return d.localSince(t, engineNow, now, now)
}

// localSince is Local for an answer to a call started at began. If the engine seems to use
// this machine's clock, localSince uses that clock and ignores engineNow, which may be
// rounded to milliseconds, and late.
func (d *Dispatcher) localSince(t, engineNow, began, now time.Time) time.Time {
	wall := now.Round(0)
	if d.caps.Recheck == 0 && engineNow.After(began.Round(0).Add(-clockDrift)) && engineNow.Before(wall.Add(clockDrift)) {
		engineNow = wall
	}
	return now.Add(t.Sub(engineNow))
}

// timed is a min-heap of beliefs by wake.
type timed []*belief

func (h timed) Len() int           { return len(h) }
func (h timed) Less(i, j int) bool { return h[i].wake < h[j].wake }
func (h timed) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = int32(i), int32(j)
}
func (h *timed) Push(x any) {
	b := x.(*belief)
	b.at = int32(len(*h))
	*h = append(*h, b)
}
func (h *timed) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	b.at = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}
