package tarry

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Meter is told what a client, its workers and a server on it do, as functions of its
// fields; any may be nil. Package tarryprom makes one that counts for Prometheus.
//
// They are called on the goroutines that do the work, many at a time and some under locks
// of the client: they must be quick, and neither block nor call the client. What they are
// handed is theirs only until they return.
type Meter struct {
	// Called is told of each call of the engine once it is over: "push", "lease" (of the
	// dispatcher's rounds as well), "wait" (a lease in which the engine's other side
	// waits), "claim", "settle", "cancel", "reschedule", "get", "list", "queue", "queues",
	// "forecast", "pause", "resume", "purge", "redrive", "settings" and "configure". Concurrent
	// pushes, cancels and settlements may share one.
	Called func(op string, took time.Duration, err error)

	// Pushed is told of n messages pushed one after the other with the same result: an
	// outcome, or an error.
	Pushed func(queue string, outcome Outcome, err error, n int)

	// Cancelled is told of n cancels one after the other with the same result.
	Cancelled func(queue string, err error, n int)

	// Leased is told of the messages of a queue that an answer brought, by claims too; it
	// is given "" and 0 for an answer that brought none of any queue, which came for
	// nothing.
	Leased func(queue string, n int)

	// Claimed is told of each claim, ErrNotDue and the like included.
	Claimed func(queue string, err error)

	// Ended is told of messages that ended before anybody leased them again: expired past
	// their ExpireAfter, or dead since their last lease lapsed with their attempts used up.
	Ended func(queue string, expired, died int)

	// Granted is told of messages handed to who called Client.Lease, LeaseNow or Leaser, such as
	// the workers of other processes through a server. now is the engine's clock at the
	// lease, so that now − Due is how late it came.
	Granted func(leases []Lease, now time.Time)

	// Settled is told of n settlements by Client.Settle one after the other with the same
	// result, such as those of other processes through a server: what was asked for, and the
	// state the messages are in, or an error. queue is "" where the engine cannot tell it.
	Settled func(queue string, do Action, state State, err error, n int)

	// Started is told of each message that a worker of the client begins to handle, and how
	// late that is: see Event.Lateness. It is not told of Topic.Claim, which is as late as
	// who reads.
	Started func(queue string, lateness time.Duration)

	// Handled is told of the other events that WorkerConfig.Observer is told, but at once,
	// and but for Expired and Died of what no handler saw: see Ended. It is told of
	// Topic.Claim too.
	Handled func(events []Event)
}

// same reports whether two results need not be told apart.
func same(a, b error) bool { return a == nil && b == nil }

// begin returns when a call of the engine begins, if that is to be metered.
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

// granted meters the answer of a lease.
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

// waited meters the answer of a lease that the engine's other side waited with.
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

// handedOut meters what a caller gets who has asked for leases.
func (m *Meter) handedOut(leases []Lease, now time.Time) {
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

// handles reports whether the meter wants to know what became of what workers did.
func (m *Meter) handles() bool { return m != nil && m.Handled != nil }
