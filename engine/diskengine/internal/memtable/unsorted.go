package memtable

import (
	"sync"
	"unsafe"
)

// unsorted has the items of entries that are not in the order of their table yet. They enter it
// when it is read, all at once and sorted: that takes a fifth of the time that one after the
// other does. Entries that are removed before are never sorted.
type unsorted struct {
	parts  []*[chunkItems]item
	memory [][]byte // of parts
	n      int      // removed ones too: their ref is 0
}

const chunkItems = chunkSize / itemSize

func (u *unsorted) at(i int) *item { return &u.parts[i/chunkItems][i%chunkItems] }

// enter enters an entry into the order.
func (w *table) enter(r ref, h *header) {
	u := &w.unsorted
	full := len(u.parts) * chunkItems
	if u.n == full && u.n > 2*(w.n-w.sorted.n) { // most were removed
		w.order()
	}
	if u.n == full {
		b := w.pool.get(false)
		u.memory = append(u.memory, b)
		u.parts = append(u.parts, (*[chunkItems]item)(unsafe.Pointer(unsafe.SliceData(b))))
	}
	h.ordinal = uint32(u.n)
	*u.at(u.n) = h.item(r)
	u.n++
	w.n++
}

// leave undoes enter.
func (w *table) leave(r ref, h *header) {
	if i := int(h.ordinal); i < w.unsorted.n && w.unsorted.at(i).ref == uint32(r) {
		w.unsorted.at(i).ref = 0
	} else {
		w.sorted.remove(h.item(r))
	}
	w.n--
}

// order returns the order of all entries.
func (w *table) order() *order {
	u := &w.unsorted
	if u.n > fewItems {
		w.sorted.load(u.collect())
		u.empty(w.pool)
	}
	for i := range u.n {
		if it := u.at(i); it.ref != 0 {
			w.sorted.insert(*it)
		}
	}
	u.n = 0
	return &w.sorted
}

// fewItems are not worth sorting.
const fewItems = 256

// Sort sorts the entries, so that Pass need not, for the most part without the lock of changes.
func (s *Sealed) Sort(lock sync.Locker) {
	w, u := s.w, &s.w.unsorted
	lock.Lock()
	defer lock.Unlock()
	if u.n <= fewItems || w.sorted.n > 0 {
		w.order()
		return
	}
	items := u.collect()
	lock.Unlock()
	o := newOrder(w.pool)
	o.load(items)
	lock.Lock()
	if u.n == 0 { // the order was read meanwhile
		o.close()
		return
	}
	for i := range u.n {
		if it := u.at(i); it.ref == 0 && it.id != 0 { // it was removed meanwhile
			o.remove(*it)
		}
	}
	w.sorted.close()
	w.sorted = o
	u.empty(w.pool)
}

// collect copies the items, and takes the ids from those that were removed.
func (u *unsorted) collect() []item {
	items := make([]item, 0, u.n)
	for i := range u.n {
		if it := u.at(i); it.ref != 0 {
			items = append(items, *it)
		} else {
			it.id = 0
		}
	}
	return items
}

// load enters many items.
func (o *order) load(items []item) {
	for _, it := range sortItems(items) {
		o.insert(it)
	}
}

// empty gives back all memory but the first part.
func (u *unsorted) empty(p *pool) {
	p.put(u.memory[1:]...)
	u.parts, u.memory, u.n = u.parts[:1], u.memory[:1], 0
}

// sortItems sorts items by radix, one byte after the other, and returns them. Negative times come
// last: an order takes items in any order.
func sortItems(items []item) []item {
	room := make([]item, len(items))
	var differ item // the bits in which they differ
	ascend := true  // as new ids do
	for i := range items {
		it, first := &items[i], &items[0]
		differ.hi |= it.hi ^ first.hi
		differ.at |= it.at ^ first.at
		differ.id |= it.id ^ first.id
		ascend = ascend && it.id >= items[max(0, i-1)].id
	}
	if ascend {
		differ.id = 0
	}
	for digit := range 8 + 8 + 4 {
		if differ.digit(digit) == 0 {
			continue
		}
		var next [256]int // by digit: where the next goes
		for i := range items {
			next[items[i].digit(digit)]++
		}
		at := 0
		for k := range next {
			next[k], at = at, at+next[k]
		}
		for i := range items {
			k := items[i].digit(digit)
			room[next[k]] = items[i]
			next[k]++
		}
		items, room = room, items
	}
	return items
}

// digit returns the i-th byte of what items are ordered by, the last one first.
func (a *item) digit(i int) byte {
	switch {
	case i < 8:
		return byte(a.id >> (8 * i))
	case i < 16:
		return byte(a.at >> (8 * (i - 8)))
	}
	return byte(a.hi >> (8 * (i - 16)))
}
