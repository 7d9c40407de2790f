package timer

import (
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// Tighten makes a Wheel deal out, fold and sweep with a handful of entries.
func (w *Wheel[T]) Tighten(young, coarse, burst, sweep int) {
	w.limits = limits{young: young, coarse: coarse, burst: uint16(burst), sweep: sweep}
	w.sweep = sweep
}

// Lend lends up to n entries that are due at now.
func (w *Wheel[T]) Lend(now time.Time, n int) []Timer[T] { return lend(w, now, n) }

// Lend lends up to n entries that are due at now.
func (r *Ring[T]) Lend(now time.Time, n int) []Timer[T] { return lend(r, now, n) }

// Lend lends up to n entries that are due at now.
func (h *Heap[T]) Lend(now time.Time, n int) []Timer[T] { return lend(h, now, n) }

func lend[T any](l lender[T], now time.Time, n int) []Timer[T] {
	all := make([]Timer[T], n)
	all = all[:l.lend(now, all)]
	for _, t := range all {
		if !l.lent(t.Handle) {
			panic("lent, and not known to be")
		}
	}
	return all
}

// Repaid ends the loan of an entry.
func (w *Wheel[T]) Repaid(h Handle) { w.repaid(h) }

// Repaid ends the loan of an entry.
func (r *Ring[T]) Repaid(h Handle) { r.repaid(h) }

// Repaid ends the loan of an entry.
func (h *Heap[T]) Repaid(handle Handle) { h.repaid(handle) }

// Check looks for what is broken inside a Wheel.
func (w *Wheel[T]) Check() error {
	if err := w.slab.check(); err != nil {
		return err
	}
	n, _, err := w.list(freshHead, 0)
	if err != nil {
		return fmt.Errorf("fresh entries: %w", err)
	}
	if n > w.young || w.young > w.limits.young {
		return fmt.Errorf("%d fresh entries, counted %d, at most %d", n, w.young, w.limits.young)
	}
	live := 0
	if w.root != nil {
		filed, err := w.checkNode(w.root, &live)
		if err != nil {
			return err
		}
		n += filed
	}
	if n != w.Len() {
		return fmt.Errorf("%d entries in lists, %d in use", n, w.Len())
	}
	if live != w.nodes.live() {
		return fmt.Errorf("%d wheels within reach, %d in use", live, w.nodes.live())
	}
	for _, number := range w.nodes.spare {
		if w.nodes.all[number] == nil {
			return fmt.Errorf("spare wheel %d has no memory", number)
		}
	}
	for _, number := range w.nodes.gone {
		if w.nodes.all[number] != nil {
			return fmt.Errorf("wheel %d is not gone", number)
		}
	}
	if !w.known {
		return nil
	}
	least := uint64(never)
	w.slab.each(func(i uint32, e *entry[T]) { least = min(least, e.due) }) // what is lent is due away
	if e := w.slab.at(w.least); e.gen == 0 || e.due != w.leastDue || least != w.leastDue {
		return fmt.Errorf("entry %d of generation %d, due %d, is known as least with %d; it is %d", w.least, e.gen, e.due, w.leastDue, least)
	}
	return nil
}

// checkNode counts the entries and wheels in and below n.
func (w *Wheel[T]) checkNode(n *node, live *int) (int, error) {
	if *live++; *live > len(w.nodes.all) {
		return 0, errors.New("wheels form a circle")
	}
	if int(n.number) >= len(w.nodes.all) || w.nodes.all[n.number] != n {
		return 0, fmt.Errorf("wheel %d is not in use", n.number)
	}
	if n.first>>n.shift()>>slotBits<<slotBits<<n.shift() != n.first {
		return 0, fmt.Errorf("wheel %d begins within its span", n.number)
	}
	if n.kids&^n.some != 0 {
		return 0, fmt.Errorf("wheel %d has wheels in slots marked empty: %x, %x", n.number, n.kids, n.some)
	}
	count := 0
	for rest := n.some; rest != 0; rest &= rest - 1 {
		slot := uint32(bits.TrailingZeros64(rest))
		first := n.end(slot) &^ (1<<n.shift() - 1)
		switch {
		case n.kids>>slot&1 != 0:
			kid := w.nodes.all[n.heads[slot].next]
			if kid == nil {
				return 0, fmt.Errorf("slot %d of wheel %d has a wheel that is gone", slot, n.number)
			}
			if kid.level+1 != n.level || kid.first != first {
				return 0, fmt.Errorf("wheel %d, level %d from %d, is below slot %d of wheel %d, level %d from %d",
					kid.number, kid.level, kid.first, slot, n.number, n.level, first)
			}
			filed, err := w.checkNode(kid, live)
			if err != nil {
				return 0, err
			}
			count += filed
		default:
			filed, most, err := w.list(n.head(slot), first)
			if err != nil {
				return 0, fmt.Errorf("slot %d of wheel %d: %w", slot, n.number, err)
			}
			if n.level > 0 && (filed > int(n.count[slot]) || most > uint64(w.limits.burst)) {
				return 0, fmt.Errorf("slot %d of wheel %d: %d entries, counted %d", slot, n.number, filed, n.count[slot])
			}
			count += filed
		}
	}
	return count, nil
}

// list walks along a list whose entries are due at first or later.
func (w *Wheel[T]) list(head uint32, first uint64) (n int, length uint64, err error) {
	prev := head
	for i := w.link(head).next; i != head; i = w.slab.at(i).next {
		if i&headBit != 0 {
			return 0, 0, errors.New("a list runs into another")
		}
		e := w.slab.at(i)
		if n++; n > w.slab.len {
			return 0, 0, errors.New("a list has no end")
		}
		if e.gen == 0 || e.prev != prev || e.due < first {
			return 0, 0, fmt.Errorf("entry %d of generation %d, after %d and not %d, is due %d in a slot from %d", i, e.gen, e.prev, prev, e.due, first)
		}
		prev = i
	}
	if last := w.link(head).prev; last != prev {
		return 0, 0, fmt.Errorf("a list ends with %d and not %d", prev, last)
	}
	return n, uint64(n), nil
}

// Check looks for what is broken inside a Ring.
func (r *Ring[T]) Check() error {
	if err := r.slab.check(); err != nil {
		return err
	}
	n := 0
	for slot := range r.heads {
		self := headBit | uint32(slot)
		prev := self
		for i := r.heads[slot].next; i != self; i = r.slab.at(i).next {
			if i&headBit != 0 {
				return fmt.Errorf("slot %d runs into another", slot)
			}
			e := r.slab.at(i)
			if n++; n > r.slab.len {
				return fmt.Errorf("slot %d has no end", slot)
			}
			if e.gen == 0 || e.prev != prev {
				return fmt.Errorf("entry %d of generation %d in slot %d, after %d and not %d", i, e.gen, slot, e.prev, prev)
			}
			if r.some[slot/64]>>(slot%64)&1 == 0 {
				return fmt.Errorf("slot %d holds something and is marked empty", slot)
			}
			// Reset to later, it is looked at too early; never too late.
			if tick := r.tickOf(e.due); tick <= r.hand || e.value.cycle > r.turns(tick) {
				return fmt.Errorf("entry %d in slot %d, cycle %d, is due %d ticks after the hand", i, slot, e.value.cycle, tick-r.hand)
			}
			prev = i
		}
		if r.heads[slot].prev != prev {
			return fmt.Errorf("slot %d ends with %d and not %d", slot, prev, r.heads[slot].prev)
		}
	}
	if n += len(r.late.items); n != r.Len() {
		return fmt.Errorf("%d entries in slots or late, %d pending", n, r.Len())
	}
	for _, item := range r.late.items {
		if e := r.slab.at(item.index); e.prev != inLate {
			return fmt.Errorf("entry %d is late and does not know", item.index)
		}
	}
	return r.late.check()
}

// Check looks for what is broken inside a Heap.
func (h *Heap[T]) Check() error {
	if err := h.slab.check(); err != nil {
		return err
	}
	return h.heap.check()
}

func (o *order[T]) check() error {
	for at, item := range o.items {
		if at > 0 && item.before(o.items[(at-1)/2]) {
			return fmt.Errorf("place %d comes before the one above it", at)
		}
		if e := o.slab.at(item.index); e.gen != item.gen || e.due != item.due || e.next != uint32(at) {
			return fmt.Errorf("place %d is due %d, its entry %d and thinks itself in %d", at, item.due, e.due, e.next)
		}
	}
	return nil
}

// each calls f for each entry in use.
func (s *slab[T]) each(f func(uint32, *entry[T])) {
	for n, entries := range s.entries {
		for at := range s.chunks[n].begun {
			if e := &entries[at]; e.gen != 0 {
				f(uint32(n)<<chunkBits|uint32(at), e)
			}
		}
	}
}

// check looks for what is broken inside a slab.
func (s *slab[T]) check() error {
	room := make(map[int32]bool)
	for n, prev := s.room, int32(0); n != 0; n = s.chunks[n-1].next {
		if s.chunks[n-1].prev != prev || room[n-1] {
			return fmt.Errorf("chunk %d is wrongly listed", n-1)
		}
		room[n-1], prev = true, n
	}
	gone := make(map[int32]bool)
	for _, n := range s.gone {
		gone[n] = true
	}
	used, empty := 0, 0
	for n, entries := range s.entries {
		c := &s.chunks[n]
		if entries == nil {
			if !gone[int32(n)] || room[int32(n)] || *c != (chunk{}) {
				return fmt.Errorf("chunk %d is without memory", n)
			}
			continue
		}
		inUse, free := 0, 0
		for _, e := range entries {
			if e.gen != 0 {
				inUse++
			}
		}
		for at := c.free; at != 0; at = uint16(entries[at-1].next) {
			if free++; entries[at-1].gen != 0 || free > chunkLen {
				return fmt.Errorf("chunk %d: entry %d is not free", n, at-1)
			}
		}
		if inUse != int(c.used) || inUse+free != int(c.begun) {
			return fmt.Errorf("chunk %d: %d in use, counted %d, %d free of %d", n, inUse, c.used, free, c.begun)
		}
		if gone[int32(n)] || room[int32(n)] != (c.used < chunkLen) {
			return fmt.Errorf("chunk %d with %d in use: listed %t", n, c.used, room[int32(n)])
		}
		if inUse == 0 {
			empty++
		}
		used += inUse
	}
	if used != s.len || empty != s.empty || empty > emptyMost {
		return fmt.Errorf("%d in use, counted %d; %d empty chunks, counted %d", used, s.len, empty, s.empty)
	}
	return nil
}
