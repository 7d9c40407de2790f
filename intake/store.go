package intake

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
)

// store pushes or cancels by messages of one kind, until the store has answered for each.
// While it does not, they are kept and tried again. It reports false if the session ended
// before that.
func (s *session) store(batch []*Message) bool {
	try := s.pushAll
	if batch[0].Cancel != "" {
		try = s.cancelAll
	}
	left, err := try(batch)
	if len(left) == 0 {
		return true
	}
	s.j.report(func(h *health) { h.waiting++ })
	defer s.j.report(func(h *health) { h.waiting-- })
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); len(left) > 0; {
		s.j.report(func(h *health) { h.store = storeTrouble(err) })
		if !pause.Wait(s.ctx) {
			return false
		}
		left, err = try(left)
	}
	return true
}

// storeTime bounds a call of the store.
const storeTime = 30 * time.Second

// pushAll pushes messages. It settles those that the store has answered for, and returns the
// others with an error of theirs.
func (s *session) pushAll(batch []*Message) (left []*Message, err error) {
	drafts := make([]tarry.Draft, len(batch))
	for n, m := range batch {
		drafts[n] = m.Draft
		if in := &drafts[n].Due.In; *in > 0 {
			*in = max(0, *in-time.Since(m.taken)) // the delay counts from when it came
		}
	}
	ctx, cancel := context.WithTimeout(s.pushCtx, storeTime)
	defer cancel()
	results, err := s.j.c.PushMany(ctx, drafts)
	if err != nil {
		for _, m := range batch {
			if m.Draft.Key == "" && !m.doubtful {
				m.doubtful = true
				s.j.counters.doubtful.Add(1)
			}
		}
		return batch, err
	}
	for n, m := range batch {
		switch r := &results[n]; {
		case r.Err == nil && r.Outcome != tarry.Kept:
			s.j.counters.pushed.Add(1)
			s.settle(m, nil)
		case r.Err == nil, m.Redelivered && errors.Is(r.Err, tarry.ErrExists):
			s.j.counters.doubles.Add(1)
			s.settle(m, nil)
		case isHopeless(r.Err):
			s.settle(m, r.Err)
		default:
			left, err = append(left, m), r.Err
		}
	}
	return left, err
}

// cancelAll is pushAll for messages that cancel.
func (s *session) cancelAll(batch []*Message) (left []*Message, err error) {
	refs := make([]tarry.Ref, len(batch))
	for n, m := range batch {
		refs[n] = tarry.ByKey(m.Cancel).Of(s.j.Queue)
	}
	ctx, cancel := context.WithTimeout(s.pushCtx, storeTime)
	defer cancel()
	results, err := s.j.c.CancelMany(ctx, refs)
	if errors.Is(err, tarry.ErrUnsupported) {
		for _, m := range batch {
			s.settle(m, err)
		}
		return nil, nil
	}
	if err != nil {
		return batch, err
	}
	for n, m := range batch {
		switch err1 := results[n].Err; {
		case err1 == nil:
			s.j.counters.cancelled.Add(1)
			s.settle(m, nil)
		case errors.Is(err1, tarry.ErrNotFound), errors.Is(err1, tarry.ErrLeased):
			s.j.counters.missed.Add(1)
			s.settle(m, nil)
		case isHopeless(err1):
			s.settle(m, err1)
		default:
			left, err = append(left, m), err1
		}
	}
	return left, err
}
