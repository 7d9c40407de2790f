package timer

// order is a binary heap of entries of a slab, by due time, and then by when
// they were scheduled. An entry's next is its index in items.
type order[T any] struct {
	slab  *slab[T]
	items []orderItem
}

// orderItem has a copy of the due time, so that comparing reads the slice alone.
type orderItem struct {
	due   uint64
	index uint32
	gen   uint32
}

func (a orderItem) before(b orderItem) bool {
	return a.due < b.due || a.due == b.due && int32(a.gen-b.gen) < 0
}

// nowhere is the next of an entry that is in no heap.
const nowhere = 1<<32 - 1

// push adds an entry.
func (o *order[T]) push(i uint32, e *entry[T]) {
	o.items = append(o.items, orderItem{e.due, i, e.gen})
	o.up(len(o.items) - 1)
}

// remove takes an entry out.
func (o *order[T]) remove(e *entry[T]) {
	at, last := int(e.next), len(o.items)-1
	e.next = nowhere
	o.items[at] = o.items[last]
	o.items = o.items[:last]
	if at < last {
		o.settle(at)
	}
	if cap(o.items) > 4096 && len(o.items) < cap(o.items)/4 {
		o.items = append(make([]orderItem, 0, cap(o.items)/2), o.items...)
	}
}

// move moves an entry to its new place after a change of its due time.
func (o *order[T]) move(e *entry[T]) {
	at := int(e.next)
	o.items[at].due = e.due
	o.settle(at)
}

func (o *order[T]) settle(at int) {
	if !o.down(at) {
		o.up(at)
	}
}

// put places an item, and notes the place in its entry.
func (o *order[T]) put(at int, item orderItem) {
	o.items[at] = item
	o.slab.at(item.index).next = uint32(at)
}

func (o *order[T]) up(at int) {
	item := o.items[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !item.before(o.items[parent]) {
			break
		}
		o.put(at, o.items[parent])
		at = parent
	}
	o.put(at, item)
}

// down reports whether the item moved.
func (o *order[T]) down(at int) bool {
	item, from := o.items[at], at
	for {
		kid := 2*at + 1
		if kid >= len(o.items) {
			break
		}
		if kid+1 < len(o.items) && o.items[kid+1].before(o.items[kid]) {
			kid++
		}
		if !o.items[kid].before(item) {
			break
		}
		o.put(at, o.items[kid])
		at = kid
	}
	o.put(at, item)
	return at != from
}
