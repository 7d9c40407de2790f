package diskengine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// parts collect entries for a batch by their kind, because Pebble inserts
// neighbours faster: what comes together mostly has neighbouring ids.
type parts [4]*pebble.Batch

func partOf(kind byte) int {
	switch kind {
	case kindMessage:
		return 0
	case kindLease:
		return 1
	case kindDue:
		return 2
	}
	return 3
}

// split has the entries to come written kind by kind.
func (c *change) split() {
	c.parts = &parts{}
	for i := range c.parts {
		c.parts[i] = c.q.e.store.db.NewBatch()
	}
}

// joinParts adds the parts to the batch.
func (c *change) joinParts() (err error) {
	if c.parts == nil {
		return nil
	}
	for _, p := range c.parts {
		if !p.Empty() {
			err = errors.Join(err, c.batch.Apply(p, nil))
		}
		err = errors.Join(err, p.Close())
	}
	c.parts = nil
	return err
}

// into returns the batch in which a key is written: always the same for the same.
func (c *change) into(key []byte) *pebble.Batch {
	if c.parts == nil {
		return c.batch
	}
	return c.parts[partOf(key[0])]
}

// empty reports whether the change changes nothing.
func (c *change) empty() bool {
	if c.parts != nil {
		for _, p := range c.parts {
			if !p.Empty() {
				return false
			}
		}
	}
	return c.batch.Empty()
}
