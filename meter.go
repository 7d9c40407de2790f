package tarry

import (
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

	// Granted reports messages returned by Client.Lease, LeaseNow and Leaser, such as those
	// for the workers of other processes through a server. now is the engine's clock at the
	// lease, so that now − Due is the lateness.
	Granted func(leases []Lease, now time.Time)

	// Settled reports n settlements by Client.Settle in a row with the same result, such as
	// those of other processes through a server: the action, and the new state of the
	// messages or an error. queue is "" where the engine does not know it.
	Settled func(queue string, do Action, state State, err error, n int)

	// Started reports each message that a worker of the client starts to handle, and how
	// late: see Event.Lateness. Topic.Claim is not reported, since its lateness depends on
	// its caller.
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

// leasedToCaller meters the leases returned to a caller.
func (m *Meter) leasedToCaller(leases []Lease, now time.Time) {
	if m != nil && m.Granted != nil && len(leases) > 0 {
		m.Granted(leases, now)
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
		s, n := &out[i], 1
		for i+n < len(in) && in[i+n].Do == in[i].Do && out[i+n].Queue == s.Queue && out[i+n].State == s.State && out[i+n].Err == nil && s.Err == nil {
			n++
		}
		m.Settled(s.Queue, in[i].Do, s.State, s.Err, n)
		i += n
	}
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
