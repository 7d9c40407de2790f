package tarryprom

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// Meter returns the meter that counts in m, for tarry.Config.Meter.
func (m *Metrics) Meter() *tarry.Meter {
	return &tarry.Meter{
		Called: func(op string, took time.Duration, err error) {
			result := called(err)
			if failing := result == "failed"; result != "cancelled" && failing != m.failing.Load() {
				m.failing.Store(failing)
			}
			o := m.op(op)
			if result == "ok" {
				o.ok.Inc()
			} else {
				m.vecs.calls.WithLabelValues(op, result).Inc()
			}
			o.took.Observe(took.Seconds())
		},
		Pushed: func(queue string, outcome tarry.Outcome, err error, n int) {
			m.all.of(queue).add(pushes, pushed(outcome, err), n)
		},
		Cancelled: func(queue string, err error, n int) {
			m.all.met(queue, err).add(cancels, because(err, removed), n)
		},
		Leased: func(queue string, n int) {
			if n == 0 {
				m.vecs.idle.Inc()
				return
			}
			m.all.of(queue).add(leases, none, n)
		},
		Claimed: func(queue string, err error) {
			m.all.met(queue, err).add(claims, because(err, claimed), 1)
		},
		Ended: func(queue string, gone, dead int) {
			s := m.all.of(queue)
			if gone > 0 {
				s.add(expired, none, gone)
			}
			if dead > 0 {
				s.add(deaths, none, dead)
			}
		},
		Settled: func(queue string, as tarry.EventKind, n int) { m.all.of(queue).ended(byEvent[as], n) },
		Started: func(queue string, lateness time.Duration) { m.all.of(queue).late(lateness.Seconds()) },
		Handled: m.handled,
	}
}

// operation has the counters of calls with a name, other than failed ones.
type operation struct {
	ok   prometheus.Counter
	took prometheus.Observer
}

// op returns the operation with a name.
func (m *Metrics) op(name string) operation {
	o, ok := m.ops.Load(name)
	if !ok {
		o, _ = m.ops.LoadOrStore(name, operation{m.vecs.calls.WithLabelValues(name, "ok"), m.vecs.callTime.WithLabelValues(name)})
	}
	return o.(operation)
}

// ended counts the ends of leases.
func (s *series) ended(r result, n int) {
	s.add(handled, r, n)
	if r == died || r == buried {
		s.add(deaths, none, n)
	}
}

// byEvent maps events to results.
var byEvent = [math.MaxUint8 + 1]result{
	tarry.Acked: acked, tarry.Dropped: dropped, tarry.Retried: retried, tarry.Snoozed: snoozed, tarry.Released: released, tarry.Buried: buried,
	tarry.Died: died, tarry.LeaseLost: leaseLost, tarry.EngineFailed: failed, tarry.SelfSettled: selfSettled,
	tarry.Unconfirmed: unconfirmed,
}

// handled counts the results of leases, equal ones in a row at once.
func (m *Metrics) handled(events []tarry.Event) {
	var (
		of   *series
		last result
		n    int
	)
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case tarry.Stuck:
			m.all.of(e.Queue).stick(1)
		case tarry.Unstuck:
			m.all.of(e.Queue).stick(-1)
		}
		r := byEvent[e.Kind]
		if r == none || e.Queue == "" { // an event without a queue is a failed lease, counted as a failed call
			continue
		}
		if of == nil || e.Queue != of.queue || r != last {
			if of != nil {
				of.ended(last, n)
			}
			of, last, n = m.all.of(e.Queue), r, 0
		}
		n++
		if e.Duration > 0 {
			of.took(e.Duration.Seconds())
		}
	}
	if of != nil {
		of.ended(last, n)
	}
}

func pushed(o tarry.Outcome, err error) result {
	switch {
	case err != nil:
		return because(err, none)
	case o == tarry.Kept:
		return kept
	case o == tarry.Replaced:
		return replaced
	}
	return created
}

// because returns the result of an error; well if it is nil.
func because(err error, well result) result {
	if err == nil {
		return well
	}
	for _, x := range [...]struct {
		is error
		r  result
	}{
		{tarry.ErrExists, exists}, {tarry.ErrLeased, leased}, {tarry.ErrNotFound, notFound}, {tarry.ErrNotDue, notDue},
		{tarry.ErrStale, stale}, {tarry.ErrLimit, limit}, {tarry.ErrLeaseLost, leaseLost},
	} {
		if errors.Is(err, x.is) {
			return x.r
		}
	}
	return failed
}

// called returns the result of a call of the engine.
func called(err error) string {
	if err == nil {
		return "ok"
	}
	if errors.Is(err, context.Canceled) {
		return "cancelled"
	}
	for _, answer := range [...]error{engine.ErrNotFound, engine.ErrLeased, engine.ErrNotDue, engine.ErrExists, engine.ErrStale,
		engine.ErrLimit, engine.ErrInvalid, engine.ErrUnsupported, engine.ErrLeaseLost, engine.ErrTooLarge} {
		if errors.Is(err, answer) {
			return "refused"
		}
	}
	return "failed"
}
