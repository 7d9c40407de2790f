package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Get returns a message with its body.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if err := ref.Check("get"); err != nil {
		return engine.Info{}, err
	}
	var p messageCopy
	var finished *engine.Info
	err := e.do(ctx, "get", func(c *call) error {
		return c.refer(ref, func(q *queue, hash *keyLookup) error {
			m, ok, err := c.byRef(q, ref, hash)
			if err != nil {
				return err
			}
			if !ok && ref.ID == 0 {
				t, left, err := c.finished(q, []byte(ref.Key), hash)
				if err != nil {
					return err
				}
				if left && t.forgotten > c.ms {
					finished = &engine.Info{ID: t.id, Queue: q.name, Key: ref.Key, State: engine.Finished, Due: rules.Instant(t.Due),
						Ending: t.Ending, Ended: rules.Instant(t.Ended), Forgotten: rules.Instant(t.forgotten)}
					return nil
				}
				if m, ok, err = c.deadOf(q, []byte(ref.Key), hash); err != nil {
					return err
				}
			}
			if !ok {
				return engine.ErrNotFound
			}
			if err := c.needContent(&m); err != nil {
				return err
			}
			p = c.copyOf(&m)
			return nil
		})
	})
	if err != nil {
		return engine.Info{}, err
	}
	if finished != nil {
		return *finished, nil
	}
	i, err := p.info(true)
	return i, wrap("get", err)
}

// deadOf finds the dead message with a key; of several, the one that died last.
func (c *call) deadOf(q *queue, key []byte, hash *keyLookup) (m message, ok bool, err error) {
	if q.dead == 0 {
		return m, false, nil
	}
	if e, found := c.e.store.Memtables.ByKey(q.num, memtable.Dead, key); found {
		if m, err = c.fromMemtable(q, e); err != nil {
			return m, false, err
		}
		ok = true
	}
	spots, err := c.spotsOfKey(q, memtable.Dead, key, hash)
	if err != nil {
		return m, false, err
	}
	for _, at := range spots {
		v, err := c.reader.Value(at)
		if err != nil {
			return m, false, err
		}
		d, err := c.stored(q, at, v)
		if err != nil {
			return m, false, err
		}
		if !ok || d.Died > m.Died || d.Died == m.Died && d.id > m.id {
			m, ok = d, true
		}
	}
	return m, ok && c.shown(&m), nil
}
