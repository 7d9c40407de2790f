package tarry

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tarryhq/tarry/internal/calls"
)

// Meter is a set of callbacks that report what a client, its workers and a server on top of
// it do. Any may be nil. Package tarryprom makes one for Prometheus.
//
// They run on the goroutines that do the work, concurrently, and some under locks of the
// client: they must be quick, and must not block or call the client. They must not keep
// their arguments after they return.
type Meter struct {
	// Called reports each finished call of the engine: "push", "lease" (the dispatcher's
	// rounds too), "wait" (a lease that waits in the engine), "claim", "settle", "cancel",
	// "reschedule", "get", "list", "queue", "queues", "forecast", "pause", "resume",
	// "purge", "redrive", "settings" and "configure". Concurrent pushes, cancels and
	// settlements may share a call.
	Called func(op string, took time.Duration, err error)

	// Pushed reports n messages in a row with the same result: an outcome, or an error.
	Pushed func(queue string, outcome Outcome, err error, n int)

	// Cancelled reports n cancels in a row with the same result.
	Cancelled func(queue string, err error, n int)

	// Leased reports the messages of a queue in an answer of the engine, claims included.
	// An answer without any message is reported as "" and 0.
	Leased func(queue string, n int)

	// Claimed reports each claim, ErrNotDue and the like included.
	Claimed func(queue string, err error)

	// Ended reports messages that ended without being leased again: expired past their
	// ExpireAfter, or dead because their last lease lapsed with their attempts used up.
	Ended func(queue string, expired, died int)

	// Settled reports n settlements by Client.Settle in a row with the same result, such as
	// those of other processes through a server, as the event that a worker would report.
	// Extensions are reported only if they fail. queue is "" where the engine does not know
	// it.
	Settled func(queue string, as EventKind, n int)

	// Started reports each message that a worker of the client starts to handle, and how
	// late: see Event.Lateness. It also reports each message returned by Client.Lease,
	// LeaseNow and Leaser, such as those for the workers of other processes through a server.
	// Topic.Claim is not reported, since its lateness depends on its caller.
	Started func(queue string, lateness time.Duration)

	// Handled reports the other events of WorkerConfig.Observer, but without delay, and
	// those of Topic.Claim too. Expired and Died of messages that no handler saw go to
	// Ended instead.
	Handled func(events []Event)
}

// ofCalls returns the callbacks for calls of the engine.
func (m *Meter) ofCalls() *calls.Meter {
	if m == nil {
		return nil
	}
	return &calls.Meter{Called: m.Called, Pushed: m.Pushed, Cancelled: m.Cancelled, Leased: m.Leased, Claimed: m.Claimed, Ended: m.Ended}
}

// leasedToCaller meters the leases returned to a caller. now is the engine's clock.
func (m *Meter) leasedToCaller(leases []Lease, now time.Time) {
	if m == nil || m.Started == nil {
		return
	}
	for i := range leases {
		m.Started(leases[i].Queue, max(0, now.Sub(leases[i].Due)))
	}
}

func (m *Meter) settled(in []Settlement, out []SettleResult, err error) {
	if m == nil || m.Settled == nil {
		return
	}
	if err != nil {
		out = calls.FailedAll(len(in), err)
	}
	for i := 0; i < len(in); {
		queue, as, n := out[i].Queue, settledAs(in[i].Do, &out[i]), 1
		for i+n < len(in) && out[i+n].Queue == queue && settledAs(in[i+n].Do, &out[i+n]) == as {
			n++
		}
		if as != 0 {
			m.Settled(queue, as, n)
		}
		i += n
	}
}

// settledAs returns the event of a settlement; 0: there is none.
func settledAs(do Action, r *SettleResult) EventKind {
	switch {
	case errors.Is(r.Err, ErrLeaseLost):
		return LeaseLost
	case r.Err != nil:
		return EngineFailed
	case do == DoExtend:
		return 0
	case do == DoAck:
		return Acked
	case do == DoSnooze:
		return Snoozed
	case do == DoRelease:
		return Released
	case do == DoBury:
		return Buried
	case r.State == Dead:
		return Died
	}
	return Retried
}

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
		Settled: either(m.Settled, o.Settled, func(queue string, as EventKind, n int) {
			m.Settled(queue, as, n)
			o.Settled(queue, as, n)
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

// either returns both if neither f nor g is nil, else the one that is not nil.
func either[F any](f, g, both F) F {
	switch {
	case reflect.ValueOf(f).IsNil():
		return g
	case reflect.ValueOf(g).IsNil():
		return f
	}
	return both
}
