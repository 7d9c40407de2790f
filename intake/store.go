package intake

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
)

// storeTime bounds a call of the store.
const storeTime = 30 * time.Second

// store pushes or cancels by messages of one kind, until the store has answered for each.
// While it does not, they are kept and tried again. It reports false if the session ended
// before that.
func (s *session) store(batch []*Message) bool {
	left, err := s.try(batch)
	if len(left) == 0 {
		return true
	}
	s.report(func(h *health) { h.waiting++ })
	defer s.report(func(h *health) { h.waiting-- })
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); len(left) > 0; {
		s.report(func(h *health) { h.store = storeTrouble(err) })
		if !pause.Wait(s.ctx) {
			return false
		}
		left, err = s.try(left)
	}
	return true
}

// hopeless are the errors of messages that no repetition would push.
var hopeless = []error{tarry.ErrInvalid, tarry.ErrTooLarge, tarry.ErrUnsupported, tarry.ErrExists, tarry.ErrLeased}

// outcome is what became of a message: it was counted, or has an error.
type outcome struct {
	counter *int64 // of the job's Counts
	err     error
}

// try settles the messages that the store has answered for, and returns the others with an
// error of one of them.
func (s *session) try(batch []*Message) (left []*Message, why error) {
	ctx, cancel := context.WithTimeout(s.pushCtx, storeTime)
	defer cancel()
	do := s.pushAll
	if batch[0].Cancel != "" {
		do = s.cancelAll
	}
	outcomes, err := do(ctx, batch)
	for n, m := range batch {
		o := outcome{err: err}
		if err == nil {
			o = outcomes[n]
		}
		switch {
		case o.err == nil:
			s.settle(m, o.counter)
		case slices.ContainsFunc(hopeless, func(h error) bool { return errors.Is(o.err, h) }):
			s.refuse(m, o.err)
		default:
			left, why = append(left, m), o.err
		}
	}
	return left, why
}

func (s *session) pushAll(ctx context.Context, batch []*Message) ([]outcome, error) {
	drafts, outcomes := make([]tarry.Draft, len(batch)), make([]outcome, len(batch))
	for n, m := range batch {
		drafts[n] = m.Draft
		if in := &drafts[n].Due.In; *in > 0 {
			*in = max(0, *in-time.Since(m.taken)) // the delay counts from when it came
		}
	}
	results, err := s.c.PushMany(ctx, drafts)
	if err != nil {
		for _, m := range batch {
			if m.Draft.Key == "" && !m.doubtful {
				s.health.count(func(st *Status) { st.Doubtful++ })
			}
			m.doubtful = true
		}
		return nil, err
	}
	for n, r := range results {
		outcomes[n] = outcome{&s.health.Pushed, r.Err}
		again := batch[n].Redelivered || batch[n].doubtful
		if r.Err == nil && r.Outcome == tarry.Kept || again && errors.Is(r.Err, tarry.ErrExists) {
			outcomes[n] = outcome{&s.health.Doubles, nil}
		}
	}
	return outcomes, nil
}

func (s *session) cancelAll(ctx context.Context, batch []*Message) ([]outcome, error) {
	refs, outcomes := make([]tarry.Ref, len(batch)), make([]outcome, len(batch))
	for n, m := range batch {
		refs[n] = tarry.ByKey(m.Cancel).Of(s.Queue)
	}
	results, err := s.c.CancelMany(ctx, refs)
	if err != nil {
		return nil, err
	}
	for n, r := range results {
		outcomes[n] = outcome{&s.health.Cancelled, r.Err}
		if errors.Is(r.Err, tarry.ErrNotFound) || errors.Is(r.Err, tarry.ErrLeased) {
			outcomes[n] = outcome{&s.health.Missed, nil}
		}
	}
	return outcomes, nil
}

// settle settles a message that the store has answered for.
func (s *session) settle(m *Message, counter *int64) {
	s.health.count(func(st *Status) {
		*counter++
		st.Unacked--
	})
	m.Settle(nil)
}

// refuse has the source set a message aside.
func (s *session) refuse(m *Message, why error) {
	s.trouble.Note(refusal, "", "key", m.Draft.Key+m.Cancel, "error", why)
	s.health.count(func(st *Status) {
		st.Refused++
		st.Unacked--
		st.LastRefused = why.Error()
	})
	m.Settle(why)
}
