package diskengine

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Redrive makes dead messages ready.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (engine.Redriven, error) {
	var out engine.Redriven
	err := e.do(ctx, "redrive", func(c *call) error {
		if len(ids) > 0 {
			gone, err := c.redriveAll(name, ids, &out)
			out.Skipped += gone
			return err
		}
		// Messages that die meanwhile are not redriven.
		left, from := limit, codec.WholeList
		for limit <= 0 || left > 0 {
			most := engine.MaxPage
			if limit > 0 {
				most = min(most, left)
			}
			l := listing{name: name, state: engine.Dead, span: from, most: most, bare: true}
			if err := l.run(c); err != nil {
				return err
			}
			if from.High == codec.WholeList.High {
				from.High = codec.Place{At: c.ms + 1} // only those dead by now
			}
			some := make([]engine.ID, len(l.found))
			for i := range l.found {
				some[i] = l.found[i].ID
			}
			if _, err := c.redriveAll(name, some, &out); err != nil { // messages gone meanwhile do not count
				return err
			}
			if left -= len(some); !l.more {
				return nil
			}
			from.Low = codec.Place{At: l.last.At, ID: l.last.ID + 1}
		}
		return nil
	})
	if err != nil {
		return engine.Redriven{}, err
	}
	return out, nil
}

// redriveAll makes dead messages live again, and returns how many are not there.
func (c *call) redriveAll(name string, ids []engine.ID, out *engine.Redriven) (gone int64, err error) {
	err = c.each(len(ids), func(i int) error {
		q, err := c.visit(name, false)
		if err != nil {
			return err
		}
		if q == nil {
			gone++
			return nil
		}
		c.see(q)
		m, ok, err := c.byID(q, ids[i])
		switch {
		case err != nil:
		case !ok || m.area != memtable.Dead:
			gone++
			return nil
		default:
			if ok, err = c.redrive(&m); ok && err == nil {
				out.Redriven++
				return nil
			}
		}
		if errors.Is(err, sstable.ErrDamaged) { // it stays dead; the others are redriven
			c.damaged(q, ids[i], err)
			err = nil
		}
		if err == nil {
			out.Skipped++
		}
		return err
	})
	return gone, err
}

// redrive makes a dead message live again, unless another message has its key by now.
func (c *call) redrive(m *message) (bool, error) {
	hash := new(keyLookup)
	if taken, err := c.taken(m, hash); taken || err != nil {
		return false, err
	}
	if err := c.needContent(m); err != nil {
		return false, err
	}
	if err := c.forgetKey(m.q, m.key, hash); err != nil {
		return false, err
	}
	s := m.base()
	s.Due, s.Expires, s.Attempt = c.ms, never, 0
	c.become(m, s, m.content)
	return true, nil
}

// taken reports whether a live message has the key of a dead one.
func (c *call) taken(m *message, hash *keyLookup) (bool, error) {
	if len(m.key) == 0 {
		return false, nil
	}
	return c.holds(m.q, m.key, hash)
}
