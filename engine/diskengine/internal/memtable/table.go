package memtable

import (
	"bytes"
	"hash/maphash"
	"math"
)

// table is a memtable: entries in memory of their own, which is given back all at once.
type table struct {
	pool   *pool
	seed   maphash.Seed
	arena  arena
	keys   index  // of entries with a key the last
	ids    [2]ids // of other entries, and of those that are Listed
	shared order  // the others with that key, by hash and time
	counts map[place]int64

	sorted   order // all entries but those in unsorted
	unsorted unsorted
	n        int // entries in both

	// Once it is sealed:
	sealed bool
	passes *[Areas]pass // may be those of other tables too
}

func newTable(p *pool, seed maphash.Seed) *table {
	return &table{
		pool: p, seed: seed, arena: newArena(p), keys: newIndex(p), ids: [2]ids{newIDs(p), newIDs(p)},
		sorted: newOrder(p), shared: newOrder(p), counts: make(map[place]int64), passes: new([Areas]pass),
	}
}

// idsOf returns where an id is. New entries that are Listed have ids that about follow each
// other too.
func (w *table) idsOf(id uint64) *ids { return &w.ids[id/listedBit] }

func (w *table) byID(id uint64) (ref, *header) {
	r := w.idsOf(id).find(id, &w.arena)
	if r == 0 {
		return 0, nil
	}
	return r, w.arena.at(r)
}

// byKey finds the entry with a key; of several the last one.
func (w *table) byKey(queue uint32, a Area, key []byte) (ref, *header) {
	return w.keyed(hashKey(w.seed, queue, a, key), placeOf(queue, a), key)
}

func (w *table) keyed(hash uint32, p place, key []byte) (ref, *header) {
	r := w.keys.find(hash, func(r ref) bool { return w.has(r, p, key) })
	if r == 0 {
		return 0, nil
	}
	return r, w.arena.at(r)
}

// has reports whether an entry is of a place and has a key.
func (w *table) has(r ref, p place, key []byte) bool {
	h := w.arena.at(r)
	if h.place != p {
		return false
	}
	k, _ := w.arena.bytes(r, h)
	return bytes.Equal(k, key)
}

func (w *table) entry(r ref, h *header) Entry {
	e := Entry{ID: h.id, Queue: h.place.queue(), Area: h.place.area(), At: h.at, Sealed: w.sealed}
	e.Key, e.Value = w.arena.bytes(r, h)
	return e
}

func (h *header) item(r ref) item {
	return item{hi: uint32(h.place), ref: uint32(r), at: h.at, id: h.id}
}

func (h *header) sharing(r ref) item { return item{hi: h.hash, ref: uint32(r), at: h.at, id: h.id} }

// add adds an entry. Its id is not there.
func (w *table) add(e *Entry) {
	r, h := w.arena.take(e)
	w.insert(r, h, e)
}

func (w *table) insert(r ref, h *header, e *Entry) {
	h.id = e.ID
	w.idsOf(h.id).insert(h.id, r)
	w.index(r, h, placeOf(e.Queue, e.Area), e.At)
}

// index enters an entry into the order, and by its key, if any, into keys or shared.
func (w *table) index(r ref, h *header, p place, at int64) {
	h.place, h.at = p, at
	w.enter(r, h)
	w.counts[p]++
	if h.key == 0 {
		return
	}
	key, _ := w.arena.bytes(r, h)
	h.hash = hashKey(w.seed, p.queue(), p.area(), key)
	if p.area().Shares() {
		if other, o := w.keyed(h.hash, p, key); o != nil {
			last, older := h.sharing(r), o.sharing(other)
			if last.less(&older) {
				h.older = true
				w.shared.insert(last)
				return
			}
			w.keys.remove(h.hash, other)
			o.older = true
			w.shared.insert(older)
		}
	}
	w.keys.insert(h.hash, r)
}

// unkey takes an entry out of keys or shared. If it was the last with its key, the one before is
// that now.
func (w *table) unkey(r ref, h *header) {
	if h.older {
		h.older = false
		w.shared.remove(h.sharing(r))
		return
	}
	w.keys.remove(h.hash, r)
	if !h.place.area().Shares() || w.shared.n == 0 {
		return
	}
	key, _ := w.arena.bytes(r, h)
	for c := w.shared.before(item{hi: h.hash, at: math.MaxInt64, id: math.MaxUint64}); c.item() != nil && c.item().hi == h.hash; c.prev() {
		if it := *c.item(); w.has(ref(it.ref), h.place, key) {
			w.shared.remove(it)
			w.arena.at(ref(it.ref)).older = false
			w.keys.insert(h.hash, ref(it.ref))
			return
		}
	}
}

// unindex undoes index.
func (w *table) unindex(r ref, h *header) {
	w.leave(r, h)
	if w.counts[h.place]--; w.counts[h.place] == 0 {
		delete(w.counts, h.place)
	}
	if h.key > 0 {
		w.unkey(r, h)
	}
}

// move moves an entry to another place or time.
func (w *table) move(r ref, h *header, p place, at int64) {
	switch {
	case h.place != p || h.at != at && p.area().Shares():
		w.unindex(r, h)
		w.index(r, h, p, at)
	case h.at != at: // its key stays where it is
		w.leave(r, h)
		h.at = at
		w.enter(r, h)
	}
}

// remove removes an entry.
func (w *table) remove(r ref, h *header) {
	it := h.item(r)
	if p := &w.passes[h.place.area()]; p.has(&it) {
		p.left = append(p.left, h.ordinal)
	}
	w.unindex(r, h)
	w.idsOf(h.id).remove(h.id, r)
	w.arena.drop(r)
}

// put changes an entry to e. The bytes of e may be part of the entry.
func (w *table) put(r ref, h *header, e *Entry) {
	key, _ := w.arena.bytes(r, h)
	if !h.fits(e) || !bytes.Equal(key, e.Key) {
		nr, nh := w.arena.take(e)
		w.remove(r, h)
		w.insert(nr, nh, e)
		return
	}
	w.move(r, h, placeOf(e.Queue, e.Area), e.At)
	h.value = uint32(len(e.Value) + len(e.Tail))
	_, value := w.arena.bytes(r, h)
	copy(value[copy(value, e.Value):], e.Tail)
}

func (w *table) close() {
	w.keys.close()
	w.ids[0].close()
	w.ids[1].close()
	w.sorted.close()
	w.unsorted.shrink(w.pool, 0)
	w.shared.close()
	w.arena.close()
}
