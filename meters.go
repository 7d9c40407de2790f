package tarry

import (
	"reflect"
	"slices"
	"time"
)

// Meters returns a Meter that calls several in order. It skips nil ones, and returns nil
// when none is left.
func Meters(all ...*Meter) *Meter {
	all = slices.DeleteFunc(slices.Clone(all), func(m *Meter) bool { return m == nil })
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all[0].and(Meters(all[1:]...))
}

// and returns a Meter that calls m and o.
func (m *Meter) and(o *Meter) *Meter {
	return &Meter{
		Called: either(m.Called, o.Called, func(op string, took time.Duration, err error) {
			m.Called(op, took, err)
			o.Called(op, took, err)
		}),
		Pushed: either(m.Pushed, o.Pushed, func(queue string, outcome Outcome, err error, n int) {
			m.Pushed(queue, outcome, err, n)
			o.Pushed(queue, outcome, err, n)
		}),
		Cancelled: either(m.Cancelled, o.Cancelled, func(queue string, err error, n int) {
			m.Cancelled(queue, err, n)
			o.Cancelled(queue, err, n)
		}),
		Leased: either(m.Leased, o.Leased, func(queue string, n int) {
			m.Leased(queue, n)
			o.Leased(queue, n)
		}),
		Claimed: either(m.Claimed, o.Claimed, func(queue string, err error) {
			m.Claimed(queue, err)
			o.Claimed(queue, err)
		}),
		Ended: either(m.Ended, o.Ended, func(queue string, expired, died int) {
			m.Ended(queue, expired, died)
			o.Ended(queue, expired, died)
		}),
		Granted: either(m.Granted, o.Granted, func(leases []Lease, now time.Time) {
			m.Granted(leases, now)
			o.Granted(leases, now)
		}),
		Settled: either(m.Settled, o.Settled, func(queue string, do Action, state State, err error, n int) {
			m.Settled(queue, do, state, err, n)
			o.Settled(queue, do, state, err, n)
		}),
		Started: either(m.Started, o.Started, func(queue string, lateness time.Duration) {
			m.Started(queue, lateness)
			o.Started(queue, lateness)
		}),
		Handled: either(m.Handled, o.Handled, func(events []Event) {
			m.Handled(events)
			o.Handled(events)
		}),
	}
}

// either returns both, or the one of f and g that is not nil.
func either[F any](f, g, both F) F {
	switch {
	case reflect.ValueOf(f).IsNil():
		return g
	case reflect.ValueOf(g).IsNil():
		return f
	}
	return both
}
