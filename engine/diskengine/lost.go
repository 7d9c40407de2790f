package diskengine

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// lose notes a message whose record cannot be read, and its place in due order if that is
// known: it is removed when the change has been made, since all keys have to be looked
// through for its own.
func (c *change) lose(id engine.ID, at position) {
	if c.lost == nil {
		c.lost = make(map[engine.ID]position)
	}
	c.lost[id] = at
	if c.messages != nil {
		c.messages[id] = nil
	}
}

// removeLost removes messages that were lost, in one batch, with the keys that lead to
// them and, as far as the keys or the places noted tell it, out of due order. The keys
// are looked through without the queue's lock. When it fails nothing is changed.
func (q *queue) removeLost(now clock, p *pending, lost map[engine.ID]position) error {
	if len(lost) == 0 {
		return nil
	}
	db, keys := q.e.store.db, make(map[engine.ID]string)
	head := appendHead(nil, kindKey, q.num)
	if err := scan(db, head, upperBound(head), func(k, v []byte) (bool, error) {
		ref, err := parseKeyRef(v)
		if _, ok := lost[ref.id]; ok && err == nil {
			keys[ref.id] = string(k[headLen:])
		}
		return true, nil // a key that is damaged too stays
	}); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.begin(now, len(lost))
	for id, at := range lost {
		if err := c.removeLost(id, at, keys[id]); err != nil {
			c.abandon()
			return err
		}
	}
	return c.commit(p)
}

// removeLost removes one of them, unless somebody else has meanwhile.
func (c *change) removeLost(id engine.ID, at position, key string) error {
	if _, err := c.message(id); !isDamage(err) {
		return err
	}
	if key != "" {
		switch ref, err := c.key(key); {
		case err != nil:
			return err
		case ref.id == id:
			at = position{ref.due, id}
		default:
			key = ""
		}
	}
	there, err := c.q.stands(kindDue, at)
	if there {
		err = c.dequeue(at)
	}
	return errors.Join(err, c.remove(id, key, true))
}
