package tarry

import (
	"reflect"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
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

// same reports whether two results may be reported together.
func same(a, b error) bool { return a == nil && b == nil }

// begin returns the start time of a call of the engine, if calls are metered.
func (m *Meter) begin() (start time.Time) {
	if m != nil && m.Called != nil {
		start = time.Now()
	}
	return start
}

// called meters a call that began at start.
func (m *Meter) called(op string, start time.Time, err error) {
	if m != nil && m.Called != nil {
		m.Called(op, time.Since(start), err)
	}
}

func (m *Meter) pushed(msgs []engine.Message, out []engine.PushResult, err error) {
	if m == nil || m.Pushed == nil {
		return
	}
	if len(msgs) == 1 && len(out) == 1 && err == nil {
		m.Pushed(msgs[0].Queue, out[0].Outcome, out[0].Err, 1)
		return
	}
	result := func(i int) engine.PushResult {
		if i < len(out) && (out[i].Err != nil || err == nil) {
			return out[i]
		}
		return engine.PushResult{Err: err}
	}
	for i := 0; i < len(msgs); {
		r, n := result(i), 1
		for i+n < len(msgs) && msgs[i+n].Queue == msgs[i].Queue {
			if next := result(i + n); next.Outcome != r.Outcome || !same(next.Err, r.Err) {
				break
			}
			n++
		}
		m.Pushed(msgs[i].Queue, r.Outcome, r.Err, n)
		i += n
	}
}

func (m *Meter) cancelled(refs []engine.Ref, errs []error, err error) {
	if m == nil || m.Cancelled == nil {
		return
	}
	result := func(i int) error {
		if err != nil {
			return err
		}
		return errs[i]
	}
	for i := 0; i < len(refs); {
		r, n := result(i), 1
		for i+n < len(refs) && refs[i+n].Queue == refs[i].Queue && same(result(i+n), r) {
			n++
		}
		m.Cancelled(refs[i].Queue, r, n)
		i += n
	}
}

func (m *Meter) leased(queue string, n int) {
	if m != nil && m.Leased != nil {
		m.Leased(queue, n)
	}
}

func (m *Meter) ended(queue string, expired, died int) {
	if m != nil && m.Ended != nil && expired+died > 0 {
		m.Ended(queue, expired, died)
	}
}

// granted meters the answer to a lease.
func (m *Meter) granted(wants []engine.Want, g *engine.Grant, err error) {
	if m == nil || err != nil {
		return
	}
	none := true
	for i := range g.Queues {
		q := &g.Queues[i]
		m.ended(wants[i].Queue, q.Expired, q.Died)
		if len(q.Messages) > 0 {
			none = false
			m.leased(wants[i].Queue, len(q.Messages))
		}
	}
	if none {
		m.leased("", 0)
	}
}

// waited meters the answer to a lease that waited in the engine.
func (m *Meter) waited(got *engine.Waited, err error) {
	if m == nil || err != nil {
		return
	}
	for _, t := range got.Told {
		m.ended(t.Queue, t.Expired, t.Died)
	}
	if len(got.Messages) == 0 {
		m.leased("", 0)
	}
	for i := 0; i < len(got.Messages); {
		n := 1
		for i+n < len(got.Messages) && got.Messages[i+n].Queue == got.Messages[i].Queue {
			n++
		}
		m.leased(got.Messages[i].Queue, n)
		i += n
	}
}

func (m *Meter) claimed(queue string, err error) {
	if m == nil {
		return
	}
	if m.Claimed != nil {
		m.Claimed(queue, err)
	}
	if err == nil {
		m.leased(queue, 1)
	}
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
		out = failedAll(len(in), err)
	}
	for i := 0; i < len(in); {
		s, n := &out[i], 1
		for i+n < len(in) && in[i+n].Do == in[i].Do && out[i+n].Queue == s.Queue && out[i+n].State == s.State && same(out[i+n].Err, s.Err) {
			n++
		}
		m.Settled(s.Queue, in[i].Do, s.State, s.Err, n)
		i += n
	}
}

func (m *Meter) started(queue string, lateness time.Duration) {
	if m != nil && m.Started != nil {
		m.Started(queue, lateness)
	}
}

// wantsHandled reports whether the meter has a Handled callback.
func (m *Meter) wantsHandled() bool { return m != nil && m.Handled != nil }

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
