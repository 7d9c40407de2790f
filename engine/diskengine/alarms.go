package diskengine

import (
	"iter"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// alarms says when something is to be looked at: a slot or a lease, each at one instant.
// One of them needs no wheel: where there are many queues, most hold one message. The
// zero value holds none.
type alarms[T comparable] struct {
	lone  bool // sole is one of them
	sole  alarm[T]
	wheel *timer.Wheel[T] // of the others; nil: there were none yet
}

type alarm[T any] struct {
	at   int64 // Unix milliseconds
	what T
}

// set sets the alarm of what has none. cancel wants the handle.
func (a *alarms[T]) set(at int64, what T) timer.Handle {
	if !a.lone {
		a.lone, a.sole = true, alarm[T]{at, what}
		return 0
	}
	if a.wheel == nil {
		a.wheel = timer.NewWheel[T](time.Millisecond, time.UnixMilli(0))
	}
	return a.wheel.Schedule(time.UnixMilli(at), what)
}

// cancel ends the alarm of something, if it has one.
func (a *alarms[T]) cancel(what T, h timer.Handle) {
	switch {
	case a.lone && a.sole.what == what:
		a.lone = false
	case a.wheel != nil:
		a.wheel.Cancel(h)
	}
}

// due yields what has an alarm whose time has come, the first ones first but for the sole
// one, and ends their alarms. None may be set meanwhile.
func (a *alarms[T]) due(now int64) iter.Seq[T] {
	return func(yield func(T) bool) {
		if a.lone && a.sole.at <= now {
			a.lone = false
			if !yield(a.sole.what) {
				return
			}
		}
		if a.wheel == nil {
			return
		}
		for _, what := range a.wheel.Advance(time.UnixMilli(now)) {
			if !yield(what) {
				return
			}
		}
	}
}

// next is when the first alarm is.
func (a *alarms[T]) next() (at int64, ok bool) {
	if a.wheel != nil {
		var due time.Time
		due, ok = a.wheel.Next()
		at = due.UnixMilli()
	}
	if a.lone && (!ok || a.sole.at < at) {
		at, ok = a.sole.at, true
	}
	return at, ok
}

// len is how many there are.
func (a *alarms[T]) len() (n int) {
	if a.wheel != nil {
		n = a.wheel.Len()
	}
	if a.lone {
		n++
	}
	return n
}
