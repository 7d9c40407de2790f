package diskengine

import (
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// keyLookup is what is known about a key that is looked up: its hash, and up to which flush no
// sstable has a live or finished entry with it.
type keyLookup struct {
	num    uint32
	key    sstable.Key
	absent uint64 // 0: not known
}

// seek looks keys up before a step asks for them. Most are in no sstable, as filters show
// without the lock. What the others need is read all at once.
func (c *call) seek(n int, key func(i int) (queue, key string), to []keyLookup) error {
	e := c.e
	set := e.store.Outer.Load()
	if set.None() {
		return nil
	}
	lacks := false
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
				absent, lacks = false, true
				c.reader.Lack(set, store.KeyAt{Area: area, Key: h.key})
			}
		}
		if absent {
			h.absent = set.Latest
		}
		to[i] = h
	}
	if !lacks {
		return nil
	}
	return c.withoutLock(c.reader.Read)
}

// spotsOfKey returns where the entries of an area with a key are now, at most one in each
// sstable. A zero spot means that the entry was deleted.
func (c *call) spotsOfKey(q *queue, area memtable.Area, key []byte, hash *keyLookup) ([]store.Spot, error) {
	set := c.e.store.Tables
	if len(set.Of[area]) == 0 {
		return nil, nil
	}
	if hash.num != q.num {
		*hash = keyLookup{num: q.num, key: c.e.store.Secret.Key(q.num, string(key))}
	}
	absent := hash.absent
	if area.Shares() { // seek does not look for those
		absent = 0
	}
	if absent == set.Latest {
		return nil, nil
	}
	return c.reader.ByKey(store.KeyAt{Area: area, Key: hash.key}, absent)
}

// lastOfKey finds the entry of an area with a key; of several, the one of the latest time. at is
// where it is in an sstable; the zero spot: in a memtable.
func (c *call) lastOfKey(q *queue, area memtable.Area, key []byte, hash *keyLookup) (last memtable.Entry, at store.Spot, ok bool, err error) {
	last, ok = c.e.store.Memtables.ByKey(q.num, area, key)
	if ok && !area.Shares() {
		return last, at, true, nil
	}
	spots, err := c.spotsOfKey(q, area, key, hash)
	if err != nil {
		return last, at, false, err
	}
	for _, s := range spots {
		if s.Src == nil {
			continue
		}
		v, err := c.reader.Head(s)
		if err != nil {
			return last, at, false, err
		}
		e := memtable.Entry{ID: v.ID, Queue: v.Queue, Area: area, At: v.At}
		if e.Key, e.Value, err = record.ParseKeyed(v.Value); err != nil {
			return last, at, false, err
		}
		if !ok || last.Position().Before(e.Position()) {
			last, at, ok = e, s, true
		}
	}
	return last, at, ok, nil
}

// messageOfKey finds the live message with a key, or the dead one that died last. hash is of
// that key, or zero.
func (c *call) messageOfKey(q *queue, area memtable.Area, key []byte, hash *keyLookup) (m message, ok bool, err error) {
	e, at, ok, err := c.lastOfKey(q, area, key, hash)
	switch {
	case !ok || err != nil:
		return m, false, err
	case at.Src != nil:
		return c.messageAt(q, at)
	}
	if m, err = c.fromMemtable(q, e); err != nil {
		return m, false, err
	}
	return m, c.shown(&m), nil
}
