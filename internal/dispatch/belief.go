package dispatch

import (
	"container/heap"
	"container/list"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/nap"
)

// belief is what is known of a queue that somebody waits on. It stands in one place:
// among the ready, which are to be asked; in a call; in the heap of those of which a
// time is known; or nowhere, when only a hint can tell more. All of it is guarded by
// Dispatcher.mu.
type belief struct {
	queue  string
	seats  list.List       // of *Subscription, in the order in which they came
	spread []*Subscription // those of them that spread over their queues

	ready  *list.Element // in Dispatcher.ready; nil: not to be asked
	busy   bool          // being asked
	hinted bool          // a hint came meanwhile
	at     int           // in Dispatcher.timed; -1: not there
	wake   time.Time     // when it is to be asked by itself, local clock

	next time.Time // when something may be there, by the engine's clock; zero: unknown
	now  time.Time // the engine's clock when it was last asked

	err   error // why it could not be asked; nil: it could
	fails int
	apart bool // asking it has taken long: it is asked alone, so that no other waits for it

	reach int  // how many subscriptions the next call asks for
	cut   bool // there were more of them than the call under way asks for

	expired, died int // not told to anybody yet
}

// Bounds on how many subscriptions of a queue one call asks for. Where thousands wait,
// most calls bring a message or two; so it begins with few and doubles while the
// engine says that there is more.
const (
	reachMin = 64
	reachMax = engine.MaxLease
)

func newBelief(queue string) *belief {
	return &belief{queue: queue, at: -1, reach: reachMin}
}

// ask has a queue asked. Called with d.mu held.
func (d *Dispatcher) ask(b *belief) {
	switch {
	case b.busy:
		b.hinted = true
	case b.ready == nil:
		if b.at >= 0 {
			heap.Remove(&d.timed, b.at)
		}
		b.ready = d.ready.PushBack(b)
		for _, s := range b.spread {
			s.asks++
		}
	}
}

// unready takes a queue from among the ready. Called with d.mu held.
func (d *Dispatcher) unready(b *belief) {
	if b.ready == nil {
		return
	}
	d.ready.Remove(b.ready)
	b.ready = nil
	for _, s := range b.spread {
		s.asks--
	}
}

// place puts a queue, of which an answer has come, where it belongs. Called with d.mu
// held.
func (d *Dispatcher) place(b *belief, ask bool) {
	b.busy = false
	switch {
	case b.seats.Len() == 0:
		d.forget(b)
	case ask:
		d.ask(b)
	case !b.wake.IsZero():
		heap.Push(&d.timed, b)
	}
}

// forget drops a queue that nobody waits on, once no call is under way for it. Called
// with d.mu held.
func (d *Dispatcher) forget(b *belief) {
	if b.seats.Len() > 0 || b.busy {
		return
	}
	d.unready(b)
	if b.at >= 0 {
		heap.Remove(&d.timed, b.at)
	}
	delete(d.queues, b.queue)
}

// learn sets the belief in a queue by the engine's answer to a call that began at
// began, and reports whether it is to be asked again at once. Called with d.mu held.
func (d *Dispatcher) learn(b *belief, got engine.Granted, engineNow, began, now time.Time) (again bool) {
	b.wake, b.next, b.err = time.Time{}, time.Time{}, got.Err
	if got.Err != nil {
		b.wake = now.Add(FailPause(b.fails))
		b.fails++
		return false
	}
	b.fails = 0
	b.now, b.next = engineNow, got.NextDue
	b.expired += got.Expired
	b.died += got.Died
	if !got.NextDue.IsZero() {
		b.wake = d.localSince(got.NextDue, engineNow, began, now)
	}
	if d.caps.Recheck > 0 {
		if until := now.Add(d.caps.Recheck); b.wake.IsZero() || until.Before(b.wake) {
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
func (h timed) Less(i, j int) bool { return h[i].wake.Before(h[j].wake) }
func (h timed) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *timed) Push(x any) {
	b := x.(*belief)
	b.at = len(*h)
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
