package memtable

import "unsafe"

// unsorted has the items of entries that are not in the order of their table yet. They enter it
// when it is read, all at once and sorted: that takes a fifth of the time that one after the
// other does. Entries that are removed before are never sorted.
type unsorted struct {
	parts  []*[chunkItems]item
	memory [][]byte // of parts
	n      int      // removed ones too: their ref is 0
}

const chunkItems = chunkSize / itemSize

// mostParts bounds the time that sorting takes, to a few milliseconds.
const mostParts = 4

func (u *unsorted) full() bool { return u.n == len(u.parts)*chunkItems }

func (u *unsorted) at(i int) *item { return &u.parts[i/chunkItems][i%chunkItems] }

// enter enters an entry into the order.
func (w *table) enter(r ref, h *header) {
	u := &w.unsorted
	if u.full() && (len(u.parts) == mostParts || u.n > 2*(w.n-w.sorted.n)) { // most were removed
		w.order()
	}
	if u.full() {
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
	if u.n == 0 {
		return &w.sorted
	}
	items := make([]item, 0, u.n)
	for i := range u.n {
		if it := u.at(i); it.ref != 0 {
			items = append(items, *it)
		}
	}
	if u.n = 0; len(items) > fewItems {
		items = sortItems(items)
		u.shrink(w.pool, 1)
	}
	for _, it := range items {
		w.sorted.insert(it)
	}
	return &w.sorted
}

// shrink gives back memory but for some parts.
func (u *unsorted) shrink(p *pool, parts int) {
	p.put(u.memory[parts:]...)
	u.parts, u.memory = u.parts[:parts], u.memory[:parts]
}

// fewItems are not worth sorting.
const fewItems = 256

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
