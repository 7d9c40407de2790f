package memengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// refer runs do on the queue of a ref and makes an engine.Error of what it
// returns. An unknown queue has no message.
func (e *Engine) refer(ctx context.Context, op string, ref engine.Ref, do func(*queue) error) error {
	if err := e.begin(ctx, op); err != nil {
		return err
	}
	defer e.end()
	return e.referred(op, ref, do)
}

// referred is refer within a call already begun.
func (e *Engine) referred(op string, ref engine.Ref, do func(*queue) error) error {
	fault := &engine.Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key}
	if ref.ID == 0 && ref.Key == "" {
		fault.Err, fault.Hint = engine.ErrInvalid, "name the message by id or by key"
		return fault
	}
	err := engine.ErrNotFound
	e.with(ref.Queue, false, func(q *queue) { err = do(q) })
	switch err {
	case nil:
		return nil
	case engine.ErrLeased:
		fault.Hint = hintLeased
	}
	fault.Err = err
	return fault
}

// Cancel removes messages; by id also dead ones.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if err := e.begin(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.end()
	errs := make([]error, len(refs))
	for i, ref := range refs {
		errs[i] = e.referred("cancel", ref, func(q *queue) error {
			m := q.find(ref)
			switch {
			case m == nil:
				return engine.ErrNotFound
			case m.state == engine.Leased:
				return engine.ErrLeased
			}
			q.drop(m)
			return nil
		})
	}
	return errs, nil
}

// Reschedule moves the due time of a scheduled or ready message.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	var info engine.Info
	err := e.refer(ctx, "reschedule", ref, func(q *queue) error {
		m := q.find(ref)
		switch {
		case m == nil || m.state == engine.Dead:
			return engine.ErrNotFound
		case m.state == engine.Leased:
			return engine.ErrLeased
		}
		q.take(m)
		m.due = due.Resolve(q.now)
		if m.expires != none { // a redriven one never expires, whatever its policy
			m.expires = expiry(m.due, &m.Policy)
		}
		m.renew()
		q.place(m)
		info = m.info(q.name, false)
		return nil
	})
	return info, err
}

// Get looks a message up, with its body.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	var info engine.Info
	err := e.refer(ctx, "get", ref, func(q *queue) error {
		m := q.find(ref)
		if dead := q.deadKeys[ref.Key]; m == nil && ref.ID == 0 && len(dead) > 0 {
			m = dead[len(dead)-1]
		}
		if m == nil {
			return engine.ErrNotFound
		}
		info = m.info(q.name, true)
		return nil
	})
	return info, err
}
