package intake

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
)

const (
	mostBatch = 256     // messages that go to the store at a time
	mostBytes = 1 << 20 // of their bodies, unless one is larger

	storeTime = 30 * time.Second // bounds a call of the store
)

// push pushes a message and those that have come after it, and then cancels. It returns a
// message that must come after these: a push of a key that one of them cancels.
func (s *Sink) push(m *Message) (next *Message) {
	var pushes, cancels []*Message
	cancelled := make(map[string]bool) // keys
	for n, bytes := 1, 0; m != nil && !cancelled[m.Draft.Key]; n++ {
		switch {
		case m.Refused != nil:
			s.aside = append(s.aside, m)
		case m.Cancel != "":
			cancels, cancelled[m.Cancel] = append(cancels, m), true
		default:
			pushes, bytes = append(pushes, m), bytes+len(m.Draft.Body)
		}
		if m = nil; n < mostBatch && bytes < mostBytes && len(s.waiting) > 0 {
			m = <-s.waiting
		}
	}
	if s.settle(pushes, s.pushAll) {
		s.settle(cancels, s.cancelAll)
	}
	return m
}

// hopeless are the errors of messages that no repetition would push.
var hopeless = []error{tarry.ErrInvalid, tarry.ErrTooLarge, tarry.ErrUnsupported, tarry.ErrExists, tarry.ErrLeased}

// settle calls the store until it has answered for each message, and acks those that it has
// taken. It reports false if the session has ended before.
func (s *Sink) settle(left []*Message, call func(context.Context, []*Message)) bool {
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); len(left) > 0; {
		ctx, cancel := context.WithTimeout(s.pushes, storeTime)
		call(ctx, left)
		cancel()
		var done, again []*Message
		var failed error
		for _, m := range left {
			switch {
			case m.err == nil:
				s.count(func(*Status) { *m.counter++ })
				done = append(done, m)
			case slices.ContainsFunc(hopeless, func(h error) bool { return errors.Is(m.err, h) }):
				s.refuse(m, m.err)
				s.aside = append(s.aside, m)
			default:
				again, failed = append(again, m), storeTrouble(m.err)
			}
		}
		s.ack(done...)
		s.report(func(w *wrong) { w.store = failed })
		if left = again; failed != nil && !pause.Wait(s.ctx) {
			return false
		}
	}
	return true
}

func (s *Sink) pushAll(ctx context.Context, ms []*Message) {
	drafts := make([]tarry.Draft, len(ms))
	for n, m := range ms {
		drafts[n] = m.Draft
		if in := &drafts[n].Due.In; *in > 0 {
			*in = max(0, *in-time.Since(m.taken)) // the delay counts from when it came
		}
	}
	results, err := s.c.PushMany(ctx, drafts)
	for n, m := range ms {
		if m.err = err; err != nil {
			if m.Draft.Key == "" && !m.doubtful {
				s.count(func(st *Status) { st.Doubtful++ })
			}
			m.doubtful = true
			continue
		}
		r, again := results[n], m.Redelivered || m.doubtful
		m.err, m.counter = r.Err, &s.status.Pushed
		if r.Err == nil && r.Outcome == tarry.Kept || again && errors.Is(r.Err, tarry.ErrExists) {
			m.err, m.counter = nil, &s.status.Doubles
		}
	}
}

func (s *Sink) cancelAll(ctx context.Context, ms []*Message) {
	refs := make([]tarry.Ref, len(ms))
	for n, m := range ms {
		refs[n] = tarry.ByKey(m.Cancel).Of(s.in.Queue)
	}
	results, err := s.c.CancelMany(ctx, refs)
	for n, m := range ms {
		if m.err = err; err != nil {
			continue
		}
		m.err, m.counter = results[n].Err, &s.status.Cancelled
		if errors.Is(m.err, tarry.ErrNotFound) || errors.Is(m.err, tarry.ErrLeased) {
			m.err, m.counter = nil, &s.status.Missed
		}
	}
}
