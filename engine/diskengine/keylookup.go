package diskengine

import (
	"bytes"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// keyLookup is what is known about a key that is looked up: its hash, and up to which flush no
// sstable has a live or finished entry with it.
type keyLookup struct {
	num    uint32
	key    sstable.Key
	absent uint64 // 0: not known

	id engine.ID // the message that had the key when the memtables were last asked; 0: none
}

// seek looks keys up before a step asks for them. Most are in no sstable, as filters show
// without the lock. What the others need is read all at once.
func (c *call) seek(n int, key func(i int) (queue, key string), to []keyLookup) error {
	e := c.e
	set := e.store.Outer.Load()
	if set.None() {
		return nil
	}
	for i := range n {
		queue, key := key(i)
		if key == "" {
			continue
		}
		num, ok := e.nums.Load(queue)
		if !ok {
			continue
		}
		h := keyLookup{num: num.(uint32)}
		h.key = e.store.Secret.Key(h.num, key)
		absent := true
		for _, area := range [...]memtable.Area{memtable.Live, memtable.Finished} {
			if set.Filters[area].MayHold(h.key) {
				absent = false
				c.lacks.keys = append(c.lacks.keys, store.KeyAt{Area: area, Key: h.key})
			}
		}
		if absent {
			h.absent = set.Latest
		}
		to[i] = h
	}
	if len(c.lacks.keys) == 0 {
		return nil
	}
	c.lacks.set = set
	return c.read()
}

// holder finds the live message with a key in the memtables: by the id that had the key last,
// or by the key.
func (c *call) holder(q *queue, key []byte, hash *keyLookup) (memtable.Entry, bool) {
	if hash.id != 0 {
		e, ok := c.e.store.Memtables.ByID(uint64(hash.id))
		if ok && e.Queue == q.num && e.Area == memtable.Live && bytes.Equal(e.Key, key) {
			return e, true
		}
	}
	e, ok := c.e.store.Memtables.ByKey(q.num, memtable.Live, key)
	hash.id = engine.ID(e.ID)
	return e, ok
}
