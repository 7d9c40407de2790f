package intake

import (
	"cmp"
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

// push pushes a message, and those that have come after it, until the store has answered for
// each. While it does not, they are kept and tried again, until End.
func (s *Sink) push(m *Message) {
	left := []*Message{m}
	for len(s.waiting) > 0 && len(left) < mostBatch {
		left = append(left, <-s.waiting)
	}
	left = slices.DeleteFunc(left, func(m *Message) bool {
		if m.Refused != nil {
			s.aside = append(s.aside, m)
		}
		return m.Refused != nil
	})
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); len(left) > 0; {
		n := together(left)
		again, err := s.store(left[:n])
		left = append(again, left[n:]...)
		s.report(func(w *wrong) { w.store = err })
		if err != nil && !pause.Wait(s.ctx) {
			return
		}
	}
}

// together returns how many of some messages go to the store at once: not a push and a cancel
// of the same key, which must reach it in their order.
func together(ms []*Message) (n int) {
	cancels := make(map[string]bool) // by key
	for bytes := 0; n < len(ms) && bytes < mostBytes; n++ {
		m := ms[n]
		key, cancel := cmp.Or(m.Cancel, m.Draft.Key), m.Cancel != ""
		if was, there := cancels[key]; there && was != cancel {
			break
		}
		if key != "" {
			cancels[key] = cancel
		}
		bytes += len(m.Draft.Body)
	}
	return n
}

// hopeless are the errors of messages that no repetition would push.
var hopeless = []error{tarry.ErrInvalid, tarry.ErrTooLarge, tarry.ErrUnsupported, tarry.ErrExists, tarry.ErrLeased}

// store pushes and cancels by messages. It acks those that the store has taken, and returns
// those that it has not answered for, with the trouble of one of them.
func (s *Sink) store(ms []*Message) (left []*Message, why error) {
	ctx, cancel := context.WithTimeout(s.pushes, storeTime)
	defer cancel()
	var pushes, cancels, done []*Message
	for _, m := range ms {
		if m.Cancel == "" {
			pushes = append(pushes, m)
		} else {
			cancels = append(cancels, m)
		}
	}
	s.pushAll(ctx, pushes)
	s.cancelAll(ctx, cancels)
	for _, m := range ms {
		switch {
		case m.err == nil:
			s.count(func(*Status) { *m.counter++ })
			done = append(done, m)
		case slices.ContainsFunc(hopeless, func(h error) bool { return errors.Is(m.err, h) }):
			s.refuse(m, m.err)
			s.aside = append(s.aside, m)
		default:
			left, why = append(left, m), storeTrouble(m.err)
		}
	}
	s.ack(done...)
	return left, why
}

func (s *Sink) pushAll(ctx context.Context, ms []*Message) {
	if len(ms) == 0 {
		return
	}
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
	if len(ms) == 0 {
		return
	}
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
