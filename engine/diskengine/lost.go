package diskengine

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// lose removes a message whose record cannot be read. It may leave behind a place in
// an order and a key, which only its record names.
func (c *change) lose(id engine.ID) error {
	if c.lost == nil {
		c.lost = make(map[engine.ID]struct{})
	}
	c.lost[id] = struct{}{}
	return c.remove(id, "", true)
}

// freeLost frees the keys of messages that were lost, and takes those that have one
// out of due order. All keys of the queue are looked through for that, without its
// lock.
func (q *queue) freeLost(now clock, p *pending, lost map[engine.ID]struct{}) error {
	if len(lost) == 0 {
		return nil
	}
	db, found := q.e.store.db, make(map[string]keyRef)
	head := appendHead(nil, kindKey, q.num)
	if err := scan(db, head, upperBound(head), func(k, v []byte) (bool, error) {
		ref, err := parseKeyRef(v)
		if _, ok := lost[ref.id]; ok && err == nil {
			found[string(k[headLen:])] = ref
		}
		return true, nil // a key that is damaged too stays
	}); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.begin(now, len(found))
	for key, was := range found {
		ref, err := c.key(key)
		if err == nil && ref.id == was.id {
			err = errors.Join(c.unplace(position{ref.due, ref.id}), c.free(key))
		}
		if err != nil {
			c.abandon()
			return err
		}
	}
	return c.commit(p)
}

// unplace takes out of due order what may no longer stand there.
func (c *change) unplace(at position) error {
	there, err := c.q.stands(kindDue, at)
	if err != nil || !there {
		return err
	}
	return c.dequeue(at)
}
