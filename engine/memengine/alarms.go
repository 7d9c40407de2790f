package memengine

import (
	"iter"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// alarms says when places of a slab are to be looked at. One of them needs no wheel:
// where there are many queues, most hold one message.
type alarms struct {
	sole  alarm
	wheel *timer.Wheel[uint32] // of the others; nil: there were none yet
}

// alarm is one of them; the zero one is none.
type alarm struct {
	at    int64 // Unix milliseconds
	place uint32
}

// set sets the alarm of a place that has none. cancel wants the handle.
func (a *alarms) set(now time.Time, at int64, place uint32) timer.Handle {
	if a.sole.place == 0 {
		a.sole = alarm{at, place}
		return 0
	}
	if a.wheel == nil {
		a.wheel = timer.NewWheel[uint32](time.Millisecond, now)
	}
	return a.wheel.Schedule(time.UnixMilli(at), place)
}

// cancel ends the alarm of a place, if it has one.
func (a *alarms) cancel(place uint32, h timer.Handle) {
	switch {
	case a.sole.place == place:
		a.sole = alarm{}
	case a.wheel != nil:
		a.wheel.Cancel(h)
	}
}

// due yields the places whose time has come at now, and ends their alarms. None may be
// set meanwhile.
func (a *alarms) due(now time.Time) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if place := a.sole.place; place != 0 && a.sole.at <= now.UnixMilli() {
			a.sole = alarm{}
			if !yield(place) {
				return
			}
		}
		if a.wheel == nil {
			return
		}
		for _, place := range a.wheel.Advance(now) {
			if !yield(place) {
				return
			}
		}
	}
}

// next is when the first alarm is; none: there is none.
func (a *alarms) next() int64 {
	at := int64(none)
	if a.sole.place != 0 {
		at = a.sole.at
	}
	if a.wheel != nil {
		if due, ok := a.wheel.Next(); ok {
			at = min(at, due.UnixMilli())
		}
	}
	return at
}
