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
	var i engine.Info
	err := e.do(ctx, "get", func(c *call) error {
		return c.refer(ref, func(q *queue, hash *keyLookup) error {
			m, ok, err := c.byRef(q, ref, hash)
			if err == nil && !ok {
				var past *engine.Info
				if m, past, err = c.ended(q, ref, hash); past != nil {
					i = *past
					return err
				}
			}
			switch {
			case err != nil:
				return err
			case m.id == 0:
				return engine.ErrNotFound
			}
			if err := c.needContent(&m); err != nil {
				return err
			}
			i, err = c.info(&m, true)
			return err
		})
	})
	if err != nil {
		return engine.Info{}, err
	}
	return i, nil
}

// ended finds what ended of those that a ref may name: the finished one with the id; or, with
// the key, what is remembered, else the dead or finished one that ended last.
func (c *call) ended(q *queue, ref engine.Ref, hash *keyLookup) (dead message, i *engine.Info, err error) {
	if ref.ID != 0 {
		i, err = c.listedByID(q, ref.ID)
		return message{}, i, err
	}
	key := []byte(ref.Key)
	t, left, err := c.finished(q, key, hash)
	if err != nil {
		return message{}, nil, err
	}
	if left && t.forgotten > c.ms {
		if i, err = c.listedByID(q, t.id); i == nil {
			i = &engine.Info{ID: t.id, Queue: q.name, Key: ref.Key, State: engine.Finished, Due: rules.Instant(t.Due), Ending: t.Ending, Ended: rules.Instant(t.Ended)}
		}
		i.Forgotten = rules.Instant(t.forgotten)
		return message{}, i, err
	}
	ok := false
	if q.dead > 0 {
		dead, ok, err = c.messageOfKey(q, memtable.Dead, key, hash)
	}
	if err == nil {
		i, err = c.listedByKey(q, key, hash)
	}
	switch {
	case !ok || err != nil:
		dead = message{}
	case i != nil && later(rules.Instant(dead.Died), dead.id, i.Ended, i.ID):
		i = nil
	}
	return dead, i, err
}
