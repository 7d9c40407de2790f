package recent

import "math"

// Staged is entries that are put together beside all others, by one who needs no lock for it. Nobody
// finds any of them before Reveal, and then all.
type Staged struct {
	of *Recent
	w  *window

	next, last uint64 // ids that are still to be folded
}

// Stage begins with some. It, and what is done with what it returns before Reveal, may go on beside
// anything else.
func (r *Recent) Stage() *Staged { return &Staged{of: r, w: newWindow(r.pool, r.seed)} }

// Add takes in an entry whose id was never there, and is greater than those before.
func (s *Staged) Add(e Entry) {
	e.check()
	s.w.ids.extend(e.ID)
	s.w.add(&e)
	if s.next == 0 {
		s.next = e.ID
	}
	s.last = e.ID
}

// CountBefore is how many of an area of a queue lie before a position.
func (s *Staged) CountBefore(queue uint32, a Area, to Position) int64 {
	p := uint32(placeOf(queue, a))
	first, end := item{hi: p, at: math.MinInt64}, item{hi: p, at: to.At, id: to.ID}
	return s.w.order.rank(&end) - s.w.order.rank(&first)
}

// AscendBefore gives fn those of an area of a queue that lie before a position, in order. fn must not
// change anything.
func (s *Staged) AscendBefore(queue uint32, a Area, to Position, fn func(Entry)) {
	p := uint32(placeOf(queue, a))
	end := item{hi: p, at: to.At, id: to.ID}
	for c := s.w.order.seek(item{hi: p, at: math.MinInt64}); c.item() != nil && c.item().less(&end); c.next() {
		r := ref(c.item().ref)
		fn(s.w.entry(r, s.w.arena.at(r)))
	}
}

// Drop forgets them all, in place of Reveal, and gives what is large back to the system: nobody has seen
// it. It is best called outside of locks.
func (s *Staged) Drop() {
	s.w.arena.giveBackLarge()
	s.w.close()
}

// Reveal lets all of them be found, in a step that takes no longer however many they are. They stand in
// a window of their own then: Fold moves them to the one that takes in what comes.
func (r *Recent) Reveal(s *Staged) { r.staged = append(r.staged, s) }

// Fold moves at most so many revealed entries to the window that takes in what comes, or of about so
// many bytes, and reports whether there are more. Without that there is no Seal.
func (r *Recent) Fold(most, bytes int) (more bool) {
	for len(r.staged) > 0 {
		s := r.staged[0]
		for ; s.next <= s.last; s.next++ {
			if most <= 0 || bytes <= 0 {
				return true
			}
			most--
			if at, h := s.w.byID(s.next); h != nil {
				if h.large == 0 {
					bytes -= int(h.key) + int(h.value)
				}
				r.active.adopt(s.w, at, h)
			}
		}
		r.staged = append(r.staged[:0:0], r.staged[1:]...)
		s.w.close()
	}
	return false
}

// adopt moves an entry here from another window.
func (w *window) adopt(from *window, r ref, h *header) {
	key, value := from.arena.bytes(r, h)
	e := Entry{ID: h.id, Queue: h.place.queue(), Area: h.place.area(), At: h.at}
	var nr ref
	var nh *header
	if h.large == 0 {
		nr, nh = w.arena.take(key, value, nil)
	} else { // what is large stays where it is
		nr, nh = w.arena.adopt(&from.arena, h)
	}
	w.ids.extend(e.ID)
	w.enter(nr, nh, &e)
	from.fall(r, h)
	from.ids.remove(h.id, r)
	from.arena.drop(r)
}

// adopt takes over the memory of an entry that is large, and returns a slot for it.
func (a *arena) adopt(from *arena, h *header) (ref, *header) {
	b := from.large[h.large-1]
	from.large[h.large-1] = nil
	from.largeFree = append(from.largeFree, h.large)
	class := classOf(headerSize)
	r := a.takeSlot(class)
	nh := a.at(r)
	*nh = header{class: uint8(class), key: h.key, value: h.value, large: a.keepLarge(b)}
	h.large = 0
	return r, nh
}
