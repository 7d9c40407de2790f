package memtable

import (
	"fmt"
	"hash/maphash"
	"math"
)

// Config is how memory is taken. Nil works.
type Config struct {
	// Keep is how many bytes are kept that no memtable needs, for the next ones. 0: 64 MiB;
	// negative: none.
	Keep int64

	// OnHeap takes memory from Go's heap, as is done anyway on systems other than Unix. The
	// race detector does not see memory elsewhere.
	OnHeap bool

	// Low is called when memory was taken and Stock should be called, maybe under a lock: it must not
	// wait. Nil: it never is.
	Low func()
}

// Tables is the entries that are in no sstable yet: a memtable that takes them in, and sealed ones that are
// being written to sstables.
//
// Look-ups may be called side by side. Changes - Add, Put, Remove, Expect, Seal, and Pass and Drop of what is
// sealed - are called while nothing else is: the caller has a lock. What is found may be read until the next
// change.
type Tables struct {
	pool   *pool
	seed   maphash.Seed
	active *table
	sealed []*Sealed // the oldest first
}

// New returns one that is empty.
func New(cfg *Config) *Tables {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Keep == 0 {
		c.Keep = 64 << 20
	}
	r := &Tables{pool: &pool{onHeap: c.OnHeap, keep: int(max(0, c.Keep) / chunkSize), low: c.Low}, seed: maphash.MakeSeed()}
	r.active = newTable(r.pool, r.seed)
	return r
}

// Close gives all memory back to the system. Nothing else is called afterwards.
func (r *Tables) Close() {
	for len(r.sealed) > 0 {
		r.sealed[0].Drop()
	}
	r.active.close()
	r.pool.close()
}

// Add takes in an entry whose id was never there.
func (r *Tables) Add(e Entry) {
	e.check()
	r.active.ids.extend(e.ID)
	r.active.add(&e)
}

// Put takes in an entry, in place of the one that has its id, if there is one. Afterwards it is in the active
// memtable.
func (r *Tables) Put(e Entry) {
	e.check()
	if at, h := r.active.byID(e.ID); h != nil {
		r.active.put(at, h, &e)
		return
	}
	r.active.add(&e) // whose bytes may be those of the one that is sealed
	r.removeOther(e.ID)
}

// check panics where an entry cannot be kept: the caller has seen to it that it can.
func (e *Entry) check() {
	if e.ID == 0 || e.ID == math.MaxUint64 || e.Queue > MaxQueue || e.Area >= areas || len(e.Key) > math.MaxUint16 || uint64(len(e.Value)+len(e.Tail)) > math.MaxUint32-math.MaxUint16 {
		panic(fmt.Sprintf("memtable: entry %d of queue %d, area %d, with %d bytes of key and %d of value", e.ID, e.Queue, e.Area, len(e.Key), len(e.Value)))
	}
}

// Remove takes an entry away, and reports whether it was there.
func (r *Tables) Remove(id uint64) bool {
	if at, h := r.active.byID(id); h != nil {
		r.active.remove(at, h)
		return true
	}
	return r.removeOther(id)
}

// removeOther takes an entry away that is not in the active memtable.
func (r *Tables) removeOther(id uint64) bool {
	for _, s := range r.sealed {
		if at, h := s.w.byID(id); h != nil {
			s.w.remove(at, h)
			return true
		}
	}
	return false
}

// ByID finds an entry.
func (r *Tables) ByID(id uint64) (Entry, bool) {
	if at, h := r.active.byID(id); h != nil {
		return r.active.entry(at, h), true
	}
	for _, s := range r.sealed {
		if at, h := s.w.byID(id); h != nil {
			return s.entry(at, h), true
		}
	}
	return Entry{}, false
}

// ByKey finds the entry that has a key in an area, of dead ones the one that died last.
func (r *Tables) ByKey(queue uint32, a Area, key []byte) (Entry, bool) {
	var best Entry
	at, h := r.active.byKey(queue, a, key)
	found := h != nil
	if found {
		best = r.active.entry(at, h)
	}
	for i := len(r.sealed) - 1; i >= 0 && (!found || a == Dead); i-- {
		s := r.sealed[i]
		if at, h := s.w.byKey(queue, a, key); h != nil && (!found || best.before(h)) {
			best, found = s.entry(at, h), true
		}
	}
	return best, found
}

func (e *Entry) before(h *header) bool {
	return e.At < h.at || e.At == h.at && e.ID < h.id
}

// Len is how many entries there are.
func (r *Tables) Len() int {
	n := 0
	r.each(func(w *table) { n += w.len() })
	return n
}

// Count is how many entries an area of a queue has.
func (r *Tables) Count(queue uint32, a Area) (n int64) {
	r.each(func(w *table) { n += w.counts[placeOf(queue, a)] })
	return n
}

// Memory is how many bytes memtables take up, and how many are spare: all but a few words for each
// chunk and for each area of a queue.
func (r *Tables) Memory() (taken, spare int64) {
	taken, spare = r.pool.memory()
	r.each(func(w *table) { taken += w.tables() })
	return taken, spare
}

// Loose is how many of the spare bytes wait for Trim: those of long values that were removed, or took another place. It
// may be called at any time.
func (r *Tables) Loose() int64 { return r.pool.loose.Load() }

// Borrow returns memory of the same kind, of so many bytes or some more, that is the caller's until giveBack and not
// counted. Both may be called at any time, giveBack best outside of locks.
func (r *Tables) Borrow(bytes int) (b []byte, giveBack func()) {
	b = r.pool.lend(bytes)
	return b, func() { r.pool.takeBack(b) }
}

// Unsealed is how many entries are in the active memtable.
func (r *Tables) Unsealed() int { return r.active.len() }

// Trim gives some of the memory back to the system that is spare beyond Config.Keep, or was that of long values, of
// which it keeps as much at most for others, and reports whether there is more of it. It may be called at any time,
// and is best called outside of locks.
func (r *Tables) Trim() bool { return r.pool.trim(trimChunks) }

const trimChunks = 16

// Stock has the system make up to 4 MiB of memory ready, no more than an eighth of what is kept, so that
// a caller that takes it under a lock does not wait for that. It may be called beside all else but Close.
func (r *Tables) Stock() { r.pool.fill() }
