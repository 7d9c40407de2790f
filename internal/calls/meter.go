package calls

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Meter has the callbacks of an Engine; see tarry.Meter. Any may be nil.
type Meter struct {
	Called    func(op string, took time.Duration, err error)
	Pushed    func(queue string, outcome engine.Outcome, err error, n int)
	Cancelled func(queue string, err error, n int)
	Leased    func(queue string, n int)
	Claimed   func(queue string, err error)
	Ended     func(queue string, expired, died int)
}

// sameResult reports whether two items may be reported together.
func sameResult(a, b error) bool { return a == nil && b == nil }

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
			if next := result(i + n); next.Outcome != r.Outcome || !sameResult(next.Err, r.Err) {
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
		for i+n < len(refs) && refs[i+n].Queue == refs[i].Queue && sameResult(result(i+n), r) {
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
