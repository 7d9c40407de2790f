package diskengine

import (
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// unnamed is the error of an unreadable message with an id that is still to be found.
type unnamed struct {
	of *engine.Error
	at store.Spot
}

// unreadable is the error of an item if its message cannot be read. After a read error it may
// be readable later. If the item names a damaged message by its key, the id is looked up when
// the call ends, without the lock.
func (c *call) unreadable(ref engine.Ref, damage error) error {
	e := &engine.Error{Op: c.op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: damaged(damage), Hint: damagedHint(c.e.store.Dir) + untilThen}
	if !errors.Is(damage, sstable.ErrDamaged) {
		e.Err, e.Hint = fmt.Errorf("%w: %w", engine.ErrUnavailable, damage), notGivenHint
		return e
	}
	if u, ok := errors.AsType[*store.UnreadableError](damage); ok && u.At.Src.Area != memtable.Finished { // no cancel finds those
		if ref.ID != 0 {
			e.Hint = c.rid(ref.ID)
		} else {
			c.unnamed = append(c.unnamed, unnamed{e, u.At})
		}
	}
	return e
}

// rid says how to get rid of a message that cannot be read.
func (c *call) rid(id engine.ID) string {
	after := ""
	if c.op == "settle" {
		after = " once its lease is over"
	}
	return fmt.Sprintf("the message cannot be read: cancel it by its id alone, %s,%s to be rid of it, or %s, once the store is closed", id, after, mendHint(c.e.store.Dir))
}

// name puts the ids of unreadable messages into the hints of their errors. It finds them in
// the index of ids, which it reads once for each damaged block.
func (c *call) name() {
	all := c.unnamed
	c.unnamed = nil
	var ids map[store.Spot]engine.ID
	err := c.withoutLock(func() error { // if the caller leaves, the present hint will do
		found := make(map[store.Spot]engine.ID)
		for _, u := range all {
			src := u.at.Src
			if _, ok := found[u.at]; !ok {
				from, to := src.Begin(u.at.Pos), src.Reach(u.at.Pos, 1)
				for pos := from; pos < to; pos++ {
					found[store.Spot{Src: src, Pos: pos}] = 0
				}
				_ = src.IDsIn(from, to, func(pos uint32, id uint64) { found[store.Spot{Src: src, Pos: pos}] = engine.ID(id) })
			}
		}
		ids = found
		return nil
	})
	if err != nil {
		return
	}
	for _, u := range all {
		if id := ids[u.at]; id != 0 {
			u.of.Hint = c.rid(id)
		}
	}
}
