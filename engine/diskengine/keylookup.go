package diskengine

import (
	"bytes"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// sought is what is known of a key that is looked for: its hash in a queue, and up to which flush no sstable
// has anybody with it who lives or is remembered.
type keyLookup struct {
	num    uint32
	key    sstable.Key
	absent uint64 // 0: that is not known

	id engine.ID // who had it when it was last looked for among the recent; 0: nobody
}

// seek looks keys up before a step asks for them: most are in no sstable, which is seen without the
// lock, and what is to be read for the others is read at once.
func (c *call) seek(n int, key func(i int) (queue, key string), to []keyLookup) error {
	e := c.e
	set := e.outer.Load()
	if set.none() {
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
		h.key = e.secret.Key(h.num, key)
		absent := true
		for _, area := range [...]memtable.Area{memtable.Live, memtable.Finished} {
			if set.filters[area].MayHold(h.key) {
				absent = false
				c.lacks.keys = append(c.lacks.keys, keyAt{area, h.key})
			}
		}
		if absent {
			h.absent = set.latest
		}
		to[i] = h
	}
	if len(c.lacks.keys) == 0 {
		return nil
	}
	c.lacks.set = set
	return c.read()
}

// holder finds who lives and has a key among the recent. Who had it last is found faster by his id.
func (c *call) holder(q *queue, key []byte, hash *keyLookup) (memtable.Entry, bool) {
	if hash.id != 0 {
		e, ok := c.e.memtables.ByID(uint64(hash.id))
		if ok && e.Queue == q.num && e.Area == memtable.Live && bytes.Equal(e.Key, key) {
			return e, true
		}
	}
	e, ok := c.e.memtables.ByKey(q.num, memtable.Live, key)
	hash.id = engine.ID(e.ID)
	return e, ok
}

// none reports whether there are no sstables.
func (s *sources) none() bool {
	return len(s.of[memtable.Live]) == 0 && len(s.of[memtable.Finished]) == 0
}
