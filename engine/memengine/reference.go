package memengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
	"github.com/tarryhq/tarry/internal/calls"
)

// refer runs do on the queue of a ref, and wraps its error in an engine.Error. For an unknown
// queue that is ErrNotFound.
func (e *Engine) refer(ctx context.Context, op string, ref engine.Ref, do func(*queue) error) error {
	if err := ref.Check(op); err != nil {
		return err
	}
	refused := engine.ErrNotFound
	if err := e.call(ctx, op, ref.Queue, false, func(q *queue) { refused = do(q) }); err != nil {
		return err
	}
	return engine.Refuse(op, ref, refused)
}

// Cancel removes messages; by id dead ones too.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if err := e.calls.Enter(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	errs := make([]error, len(refs))
	for name, items := range calls.GroupBy(len(refs), func(i int) string { return refs[i].Queue }) {
		for some := range slices.Chunk(items, stride) {
			known := e.with(name, false, func(q *queue) {
				for _, i := range some {
					errs[i] = engine.Refuse("cancel", refs[i], q.cancel(refs[i]))
				}
			})
			if !known {
				for _, i := range some {
					errs[i] = engine.Refuse("cancel", refs[i], engine.ErrNotFound)
				}
			}
		}
	}
	return errs, nil
}

func (q *queue) cancel(ref engine.Ref) error {
	if err := ref.Check("cancel"); err != nil {
		return err
	}
	m := q.find(ref)
	if m == nil {
		return engine.ErrNotFound
	}
	if err := engine.RefuseState("cancel", ref, m.state); err != nil {
		return err
	}
	if m.state == engine.Leased {
		return engine.ErrLeased
	}
	if m.live {
		q.leave(m, engine.Cancelled, q.ms, ref.By)
	} else {
		q.drop(m)
	}
	return nil
}

// Reschedule moves the due time of a scheduled or ready message.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	var info engine.Info
	err := e.refer(ctx, "reschedule", ref, func(q *queue) error {
		m, err := q.findWaiting("reschedule", ref)
		if err != nil {
			return err
		}
		q.take(m)
		m.due = due.Resolve(q.now)
		if m.expires() != none { // a redriven message never expires, whatever its policy
			m.setExpires(rules.Expiry(m.due, &m.kind.Policy))
		}
		q.renew(m)
		q.place(m)
		info = q.info(m, false)
		return nil
	})
	return info, err
}

// Get looks a message up, with its body.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	var info engine.Info
	err := e.refer(ctx, "get", ref, func(q *queue) error {
		m := q.byID(ref.ID)
		if ref.ID == 0 {
			m = q.byKey(ref.Key)
		}
		if m == nil && ref.ID == 0 {
			m = q.lastOf(ref.Key)
		}
		switch {
		case m == nil:
			return engine.ErrNotFound
		case m.inHistory:
			info = q.historyInfo(m)
		case m.state == engine.Finished:
			info = q.finishedInfo(m)
		default:
			info = q.info(m, true)
		}
		return nil
	})
	return info, err
}

// lastOf returns the last message with a key that no live message holds: the one that is
// remembered, or else that which ended last; nil: none.
func (q *queue) lastOf(key string) *message {
	if m := q.keyed(key); m != nil && q.remembers(m) {
		return m
	}
	for _, m := range slices.Backward(q.endedKeys[key]) {
		if m.inHistory && q.lists(m) || !m.inHistory && q.stays(m) {
			return m
		}
	}
	return nil
}
