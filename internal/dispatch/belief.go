package dispatch

import (
	"container/heap"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/nap"
)

// belief is what is known of a queue that somebody waits on. It stands in one place:
// among the ready, which are to be asked, or the parked of them, for which nobody takes
// his turn; in a call; in the heap of those of which a time is known; or nowhere, when
// only a hint can tell more. All of it is guarded by
// Dispatcher.mu.
type belief struct {
	queue string
	seats chain[Subscription] // in the order in which they came

	place  link[belief] // in Dispatcher.ready, or parked
	ready  bool         // it is there: to be asked
	parked bool         // as long as no turn begins
	busy   bool         // being asked
	hinted bool         // a hint came meanwhile
	apart  bool         // asking it has taken long: it is asked alone, so that no other waits for it
	held   bool         // more is ready, and held back
	cut    bool         // there were more subscriptions than the call under way asks for
	reach  int32        // how many subscriptions the next call asks for
	fails  int32        // how often it could not be asked, in a row
	spread int32        // how many subscriptions spread over their queues
	at     int32        // in Dispatcher.timed; -1: not there
	wake   moment       // when it is to be asked by itself

	next int64 // when something may be there, in milliseconds of the engine's clock; none: unknown

	err error // why it could not be asked; nil: it could

	expired, died int // not told to anybody yet
}

// moment is an instant of our clock, since Dispatcher.epoch; 0: none is known.
type moment time.Duration

// moment is the instant t, of the monotonic clock.
func (d *Dispatcher) moment(t time.Time) moment { return moment(max(1, t.Sub(d.epoch))) }

func (d *Dispatcher) time(m moment) time.Time { return d.epoch.Add(time.Duration(m)) }

// none is the zero time in milliseconds.
var none = time.Time{}.UnixMilli()

// instant is a time of the engine's.
func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Bounds on how many subscriptions of a queue one call asks for. Where thousands wait,
// most calls bring a message or two; so it begins with few and doubles while the
// engine says that there is more.
const (
	reachMin = 16
	reachMax = engine.MaxLease
)

func newBelief(queue string) *belief {
	b := &belief{queue: queue, at: -1, reach: reachMin, next: none}
	b.place.of = b
	return b
}

// ask has a queue asked. Called with d.mu held.
func (d *Dispatcher) ask(b *belief) {
	switch {
	case b.busy:
		b.hinted = true
	case !b.ready:
		d.untime(b)
		b.ready = true
		d.ready.add(&b.place)
		b.tellSpread(1, 0)
	}
}

// unready takes a queue from among the ready. Called with d.mu held.
func (d *Dispatcher) unready(b *belief) {
	if !b.ready {
		return
	}
	d.unpark(b)
	d.ready.remove(&b.place)
	b.ready = false
	b.tellSpread(-1, 0)
}

// tellSpread has those that spread over their queues count this one among those that are
// ready or being asked, or no more.
func (b *belief) tellSpread(ready, busy int) {
	left := b.spread
	for l := b.seats.first; left > 0; l = l.next {
		s := l.of
		if !s.Spread {
			continue
		}
		s.asks += ready
		s.busy += busy
		if s.asks == 0 && s.once() {
			s.answer.wide = 0
		}
		left--
	}
}

// tellFailing has all who wait on a queue count it among those that could not be asked,
// or no more.
func (b *belief) tellFailing(n int) {
	for l := b.seats.first; l != nil; l = l.next {
		l.of.failing += n
	}
}

// tellHeld tells those that stand that more is held back, or no more. Others hear it with
// their answer.
func (b *belief) tellHeld() {
	for l := b.seats.first; l != nil; l = l.next {
		s := l.of
		switch {
		case !s.stands:
		case b.held:
			s.held[b.queue] = struct{}{}
		default:
			delete(s.held, b.queue)
		}
	}
}

// hold tells a lease if more of a queue is held back.
func (s *Subscription) hold(b *belief) {
	switch {
	case !b.held:
	case s.stands:
		s.held[b.queue] = struct{}{}
	case s.once():
		s.answer.tell(b.queue).Held = true
	}
}

// untime takes a queue from those of which a time is known. Called with d.mu held.
func (d *Dispatcher) untime(b *belief) {
	if b.at >= 0 {
		heap.Remove(&d.timed, int(b.at))
	}
}

// place puts a queue, of which an answer has come, where it belongs. Called with d.mu
// held.
func (d *Dispatcher) place(b *belief, ask bool) {
	if b.busy {
		b.busy = false
		b.tellSpread(0, -1)
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

// forget drops a queue that nobody waits on, once no call is under way for it. Called
// with d.mu held.
func (d *Dispatcher) forget(b *belief) {
	if b.seats.first != nil || b.busy {
		return
	}
	d.unready(b)
	d.untime(b)
	delete(d.queues, b.queue)
}

// learn sets the belief in a queue by the engine's answer to a call that began at
// began, and reports whether it is to be asked again at once. Called with d.mu held.
func (d *Dispatcher) learn(b *belief, got *engine.Granted, engineNow, began, now time.Time) (again bool) {
	if failed := got.Err != nil; failed != (b.err != nil) {
		if failed {
			b.tellFailing(1)
		} else {
			b.tellFailing(-1)
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
		b.tellHeld()
	}
	b.next, d.now, d.nowAt = got.NextDue.UnixMilli(), engineNow, now
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

// FailPause is the pause after a call that failed, when so many failed before it.
func FailPause(fails int) time.Duration {
	return min(failPauseBase<<min(fails, 10), failPauseMax)
}

// Local turns an instant of the engine's clock into one of ours.
func (d *Dispatcher) Local(t, engineNow, now time.Time) time.Time {
	return d.localSince(t, engineNow, now, now)
}

// localSince does so for an answer to a call that began at began. An engine that runs
// on our clock may answer in whole milliseconds, and late; ours is finer.
func (d *Dispatcher) localSince(t, engineNow, began, now time.Time) time.Time {
	wall := now.Round(0)
	if d.caps.Recheck == 0 && engineNow.After(began.Round(0).Add(-nap.Drift)) && engineNow.Before(wall.Add(nap.Drift)) {
		engineNow = wall
	}
	return now.Add(t.Sub(engineNow))
}

// timed is a heap of beliefs, the one to be asked first at the top.
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
