package timer

import "math/bits"

// grownUp files the fresh entries, or counts them anew if most of them were
// cancelled. At least limits.young/2 entries are scheduled between two calls, so
// the cost is constant for each.
func (w *Wheel[T]) grownUp() {
	n := 0
	for i := w.fresh.next; i != freshHead; i = w.slab.at(i).next {
		n++
	}
	if w.young = n; n > w.limits.young/2 {
		w.settle()
	}
}

// settle files all fresh entries. Its callers hold no wheel.
func (w *Wheel[T]) settle() {
	for i := w.fresh.next; i != freshHead; {
		e := w.slab.at(i)
		next := e.next
		w.file(i, e)
		i = next
	}
	w.fresh, w.young = links{freshHead, freshHead}, 0
	w.tidy()
}

// file puts an entry into the slot of its due.
func (w *Wheel[T]) file(i uint32, e *entry[T]) {
	due := e.due
	n := w.root
	if n == nil || !n.covers(due) {
		n = w.raise(due)
	}
	for {
		slot := n.slot(due)
		bit := uint64(1) << slot
		head := &n.heads[slot]
		if n.kids&bit != 0 {
			n.some |= bit
			n = w.nodes.all[head.next]
			continue
		}
		self := n.head(slot)
		if n.some&bit == 0 {
			n.some |= bit
			n.count[slot] = 0
			*head = links{self, self}
		}
		if n.level > 0 {
			if n.count[slot] >= w.limits.burst && w.crowded(n, slot) {
				w.deal(n, slot)
				continue
			}
			n.count[slot]++
		}
		last := head.prev
		e.next, e.prev = self, last
		head.prev = i
		w.link(last).next = i
		return
	}
}

// link returns the links of an entry or of a list's head.
func (w *Wheel[T]) link(i uint32) *links {
	if i&headBit != 0 {
		if i == freshHead {
			return &w.fresh
		}
		return &w.nodes.all[i&^headBit>>slotBits].heads[i&slotMask]
	}
	return &w.slab.at(i).links
}

func (w *Wheel[T]) unlink(e *entry[T]) {
	w.link(e.prev).next = e.next
	w.link(e.next).prev = e.prev
}

// raise puts wheels above the root until the root covers due.
func (w *Wheel[T]) raise(due uint64) *node {
	if w.root == nil {
		w.root = w.nodes.take(levelOf(due, middle), due)
		return w.root
	}
	if w.root.some == 0 {
		// It is empty: move its span to due.
		n := w.root
		n.first = due >> n.shift() >> slotBits << slotBits << n.shift()
		return n
	}
	n := w.root
	for !n.covers(due) {
		up := w.nodes.take(n.level+1, n.first)
		slot := up.slot(n.first)
		up.some |= 1 << slot
		up.kids |= 1 << slot
		up.heads[slot].next = n.number
		n = up
	}
	w.root = n
	return n
}

// crowded reports whether a slot that took many entries still has many; if not,
// it counts them anew. At least limits.burst/2 entries are filed between two
// counts, so the cost is constant for each.
func (w *Wheel[T]) crowded(n *node, slot uint32) bool {
	many, left, head := w.limits.burst/2, uint16(0), n.head(slot)
	for i := n.heads[slot].next; i != head; i = w.slab.at(i).next {
		if left++; left > many {
			return true
		}
	}
	n.count[slot] = left
	return false
}

// deal gives a slot that is not empty a finer wheel, and deals its entries out
// into it. Digits that all of them share are skipped without touching the entries
// again, so that a million with the same due time cost one pass.
func (w *Wheel[T]) deal(n *node, slot uint32) {
	head := n.head(slot)
	list := n.heads[slot]
	low, high := uint64(never), uint64(0)
	for i := list.next; i != head; {
		e := w.slab.at(i)
		low, high = min(low, e.due), max(high, e.due)
		i = e.next
	}
	within := n.end(slot)
	var kid *node
	for level := n.level; level > 0; {
		level--
		kid = w.nodes.take(level, within)
		n.some |= 1 << slot
		n.kids |= 1 << slot
		n.heads[slot].next = kid.number
		n, slot = kid, kid.slot(low)
		if !kid.covers(high) || kid.slot(high) != slot || !kid.covers(low) {
			break
		}
		within = low
		if level == 0 {
			w.splice(kid, slot, list)
			return
		}
	}
	for i := list.next; i != head; {
		e := w.slab.at(i)
		next := e.next
		w.file(i, e)
		i = next
	}
}

// splice moves a whole list into an empty slot.
func (w *Wheel[T]) splice(n *node, slot uint32, list links) {
	n.some |= 1 << slot
	n.heads[slot] = list
	self := n.head(slot)
	w.link(list.next).prev = self
	w.link(list.prev).next = self
}

// fold removes the empty wheel below a slot.
func (w *Wheel[T]) fold(n *node, slot uint32) {
	n.some &^= 1 << slot
	n.kids &^= 1 << slot
	w.nodes.drop(w.nodes.all[n.heads[slot].next])
}

// tidy removes the wheels that lost all entries, cancelled or reset, before
// they came to the front. It does so when there are twice as many wheels as
// after the last time. It may drop any wheel, so callers must not hold one:
// file, deal and scan do not call it.
func (w *Wheel[T]) tidy() {
	if w.nodes.live() > w.sweep {
		w.prune(w.root)
		w.sweep = max(w.limits.sweep, 2*w.nodes.live())
	}
}

// prune removes the empty wheels below n, and reports whether nothing is left in n.
func (w *Wheel[T]) prune(n *node) bool {
	for rest := n.some; rest != 0; rest &= rest - 1 {
		slot := uint32(bits.TrailingZeros64(rest))
		if n.kids>>slot&1 != 0 {
			if w.prune(w.nodes.all[n.heads[slot].next]) {
				w.fold(n, slot)
			}
		} else if n.heads[slot].next == n.head(slot) {
			n.some &^= 1 << slot
		}
	}
	return n.some == 0
}
