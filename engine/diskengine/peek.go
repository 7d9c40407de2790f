package diskengine

import (
	"context"
	"errors"
	"syscall"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// Peek returns the ready message of each queue that is leased first, without its content.
func (e *Engine) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	first := make([]engine.Info, len(queues))
	err := e.do(ctx, "peek", func(c *call) error {
		return c.each(len(queues), func(i int) (err error) {
			first[i], err = c.peek(queues[i])
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return first, nil
}

// peek finds the message that a Lease would give first, in the ready heap as Lease does. Like
// that it waits only until what became ready is durable.
func (c *call) peek(name string) (engine.Info, error) {
	q, err := c.visit(name, false)
	if q == nil || err != nil {
		return engine.Info{}, err
	}
	c.written = true
	c.syncedTo = max(c.syncedTo, c.e.fresh.lastBefore(c.ms))
	end := memtable.Position{At: c.ms + 1}
	for range store.StepItems {
		if err := c.advance(q, 1); err != nil {
			return engine.Info{}, err
		}
		more := q.front.Before(end)
		t, m, ok, err := c.top(q, c.reader.Head)
		switch {
		case err == store.ErrLack, err == errYield, errors.Is(err, syscall.EIO):
			return engine.Info{}, err
		case err != nil:
			c.damaged(q, t.ID, err)
			q.leaves(t.Due, t.ID) // it is not handed out
			continue
		case !ok && !more:
			c.e.weigh(q)
			return engine.Info{}, nil
		case !ok:
			continue
		case m.past(c.ms):
			c.expire(&m)
			continue
		}
		q.take(t)
		if more && t.Priority > q.least && len(q.heap) < c.e.room() { // one behind front may come first
			continue
		}
		c.e.weigh(q)
		return m.head(), nil
	}
	return engine.Info{}, errYield
}

// Find returns for each id the queue of the live or dead message that has it.
func (e *Engine) Find(ctx context.Context, ids []engine.ID) ([]string, error) {
	found := make([]string, len(ids))
	err := e.do(ctx, "find", func(c *call) error {
		return c.each(len(ids), func(i int) error {
			q, err := c.find(ids[i])
			switch {
			case err != nil:
				return err
			case q == nil:
				c.syncedTo = max(c.syncedTo, e.store.Log.End()) // its end may be anywhere in the log
			default:
				c.see(q)
				found[i] = q.name
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// find returns the queue of a live or dead message; nil: there is none. A message that cannot
// be read is there.
func (c *call) find(id engine.ID) (*queue, error) {
	q, err := c.queueOf(id)
	if q == nil || err != nil {
		return nil, err
	}
	if q, err = c.visit(q.name, false); err != nil {
		return nil, err
	}
	m, ok, err := c.byID(q, id)
	_, ok, err = c.unexpired(m, ok, err)
	if ok || store.IsUnreadable(err) {
		return q, nil
	}
	return nil, err
}

// queueOf returns the queue that a message is stored in; nil: it is not stored.
func (c *call) queueOf(id engine.ID) (*queue, error) {
	if id == 0 {
		return nil, nil
	}
	if x, ok := c.e.store.Memtables.ByID(uint64(id)); ok {
		return c.e.numbered[x.Queue], nil
	}
	at, err := c.reader.ByID(id)
	if at.Src == nil || err != nil {
		return nil, err
	}
	return c.e.numbered[at.Src.QueueAt(at.Pos).Queue], nil
}
