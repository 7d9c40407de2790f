package memtable

import (
	"fmt"
	"hash/maphash"
	"math"
)

// Config says how memory is taken. Nil means all defaults.
type Config struct {
	// Keep is how many bytes are kept for later that no memtable needs now. 0: 64 MiB;
	// negative: none.
	Keep int64

	// OnHeap takes memory from Go's heap, so that the race detector sees it. On systems other
	// than Unix this is always so.
	OnHeap bool
}

// Tables has the entries that are in no sstable yet: an active memtable that takes them in,
// and sealed ones that are being written to sstables.
//
// Look-ups by id and key may run side by side. All else, but Borrow, Trim and Loose, runs alone: the
// caller has a lock. An entry that is found may be read until the
// next change.
type Tables struct {
	pool   *pool
	seed   maphash.Seed
	active *table
	sealed []*table // the oldest first
}

// New returns empty Tables.
func New(cfg *Config) *Tables {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.Keep == 0 {
		c.Keep = 64 << 20
	}
	r := &Tables{pool: &pool{onHeap: c.OnHeap, keep: int(max(0, c.Keep) / chunkSize)}, seed: maphash.MakeSeed()}
	r.active = newTable(r.pool, r.seed)
	return r
}

// Close gives all memory back to the system. Nothing else is called afterwards.
func (r *Tables) Close() {
	r.each((*table).close)
	r.pool.close()
}

// Add adds an entry. Its id was never there.
func (r *Tables) Add(e Entry) {
	e.check()
	r.active.idsOf(e.ID).extend(e.ID)
	r.active.add(&e)
}

// Put adds an entry to the active memtable. It replaces the entry with the same id, if there
// is one.
func (r *Tables) Put(e Entry) {
	e.check()
	if at, h := r.active.byID(e.ID); h != nil {
		r.active.put(at, h, &e)
		return
	}
	r.active.add(&e) // first: its bytes may be part of the sealed entry
	r.removeOther(e.ID)
}

// check panics if an entry cannot be kept: the caller must make sure that it can.
func (e *Entry) check() {
	if e.ID == 0 || e.ID == math.MaxUint64 || e.Queue > MaxQueue || e.Area >= Areas || len(e.Key) > math.MaxUint16 || uint64(len(e.Value)+len(e.Tail)) > math.MaxUint32-math.MaxUint16 {
		panic(fmt.Sprintf("memtable: entry %d of queue %d, area %d, with %d bytes of key and %d of value", e.ID, e.Queue, e.Area, len(e.Key), len(e.Value)))
	}
}

// Remove removes an entry, and reports whether it was there.
func (r *Tables) Remove(id uint64) bool {
	if at, h := r.active.byID(id); h != nil {
		r.active.remove(at, h)
		return true
	}
	return r.removeOther(id)
}

// removeOther removes an entry from the sealed memtables.
func (r *Tables) removeOther(id uint64) bool {
	for _, w := range r.sealed {
		if at, h := w.byID(id); h != nil {
			w.remove(at, h)
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
	for _, w := range r.sealed {
		if at, h := w.byID(id); h != nil {
			return w.entry(at, h), true
		}
	}
	return Entry{}, false
}

// ByKey finds the entry with a key in an area; of several the last one.
func (r *Tables) ByKey(queue uint32, a Area, key []byte) (Entry, bool) {
	var best Entry
	at, h := r.active.byKey(queue, a, key)
	found := h != nil
	if found {
		best = r.active.entry(at, h)
	}
	for i := len(r.sealed) - 1; i >= 0 && (!found || a.Shares()); i-- {
		w := r.sealed[i]
		if at, h := w.byKey(queue, a, key); h != nil && (!found || best.before(h)) {
			best, found = w.entry(at, h), true
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
	r.each(func(w *table) { n += w.n })
	return n
}

// Count is how many entries an area of a queue has.
func (r *Tables) Count(queue uint32, a Area) (n int64) {
	r.each(func(w *table) { n += w.counts[placeOf(queue, a)] })
	return n
}

// Memory is how many bytes memtables take, and how many are spare. It leaves out a few words
// for each chunk, page of an index and area of a queue, which are on Go's heap.
func (r *Tables) Memory() (taken, spare int64) { return r.pool.memory() }

// Loose is how many of the spare bytes wait for Trim: those of long values that were removed
// or moved. It may be called at any time.
func (r *Tables) Loose() int64 { return r.pool.loose.Load() }

// Borrow returns memory of the same kind, of so many bytes or some more. It is the caller's
// until giveBack, and does not count in Memory. Both may be called at any time, giveBack best
// without a lock.
func (r *Tables) Borrow(bytes int) (b []byte, giveBack func()) {
	b = r.pool.lend(bytes)
	return b, func() { r.pool.takeBack(b) }
}

// Unsealed is how many entries are in the active memtable.
func (r *Tables) Unsealed() int { return r.active.n }

// Trim gives some memory back to the system: chunks spare beyond Config.Keep, and the memory
// of removed long values, of which it keeps as much again for later ones. It reports whether
// there is more. It may be called at any time, best without a lock.
func (r *Tables) Trim() bool { return r.pool.trim(trimChunks) }

const trimChunks = 16
