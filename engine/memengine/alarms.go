package memengine

import (
	"iter"
	"time"

	"github.com/tarryhq/tarry/timer"
)

// alarms holds the times at which places of a slab need attention. A single alarm needs no
// wheel: with many queues, most hold one message.
type alarms struct {
	sole  alarm
	wheel *timer.Wheel[uint32] // of the other alarms; nil: none so far
}

// alarm is one alarm; the zero value is none.
type alarm struct {
	at    int64 // Unix milliseconds
	place uint32
}

// set sets the alarm of a place that has none, and returns the handle for cancel.
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

// due yields the places with alarms that are due at now, and removes the alarms. No alarm may
// be set meanwhile.
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

// next returns the time of the first alarm; none: there is no alarm.
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
