package diskengine

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// Cancel removes messages; dead ones only by id.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	errs := make([]error, len(refs))
	err := e.do(ctx, "cancel", func(c *call) error {
		keys := make([]keyLookup, len(refs))
		err := c.seek(len(refs), func(i int) (string, string) { return refs[i].Queue, refs[i].Key }, keys)
		if err != nil {
			return err
		}
		return c.each(len(refs), func(i int) error {
			refused, err := c.cancel(refs[i], &keys[i])
			errs[i] = engine.Refuse("cancel", refs[i], refused)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// cancel removes one message. refused says why it did not; err ends the whole call.
func (c *call) cancel(ref engine.Ref, hash *keyLookup) (refused, err error) {
	if err := ref.Check("cancel"); err != nil {
		return err, nil
	}
	q, err := c.visit(ref.Queue, false)
	if store.IsUnreadable(err) {
		return c.unreadable(ref, err), nil
	}
	if err != nil {
		return nil, err
	}
	if q == nil {
		return engine.ErrNotFound, nil
	}
	c.see(q)
	m, ok, err := c.byRef(q, ref, hash)
	if errors.Is(err, sstable.ErrDamaged) {
		return c.discard(q, ref, err)
	}
	if store.IsUnreadable(err) {
		return c.unreadable(ref, err), nil
	}
	if err != nil {
		return nil, err
	}
	if !ok {
		return engine.ErrNotFound, nil
	}
	s := m.state(c.ms)
	if err := engine.RefuseState("cancel", ref, s); err != nil {
		return err, nil
	}
	switch {
	case s == engine.Leased:
		return engine.ErrLeased, nil
	case m.area == memtable.Dead:
		c.drop(&m)
	default:
		c.leave(&m, engine.Cancelled, c.ms, ref.By)
	}
	return nil, nil
}

// discard removes a message that cannot be read, unless it is leased, or ref has no id or
// names a state.
func (c *call) discard(q *queue, ref engine.Ref, damage error) (refused, err error) {
	if ref.ID == 0 || ref.IfState != engine.Gone {
		return c.unreadable(ref, damage), nil
	}
	l, at := q.leaseOf(ref.ID), store.Spot{}
	if l != nil {
		at = c.e.spotOfLease(l)
	}
	if at.Src == nil {
		at, err = c.reader.ByID(ref.ID)
		if store.IsUnreadable(err) {
			return c.unreadable(ref, err), nil
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case at.Src == nil:
		return engine.ErrNotFound, nil
	case l != nil && !l.HasLapsed():
		return engine.ErrLeased, nil
	}
	c.drop(&message{id: ref.ID, q: q, area: at.Src.Area, at: at, lease: l})
	q.rewind() // its due time is not known, nor whether it is in the heap
	return nil, nil
}
