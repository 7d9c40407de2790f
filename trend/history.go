package trend

import (
	"encoding/binary"
	"sync"
	"time"
)

// Resolution is the length of the finest slots.
const Resolution = 10 * time.Second

// level is a length of slots, and how long they are kept.
type level struct {
	slots int64 // number of finest slots in one
	keep  int64 // number of slots kept
}

var levels = [...]level{{1, 90}, {6, 360}, {60, 432}}

func (l level) step() time.Duration  { return time.Duration(l.slots) * Resolution }
func (l level) reach() time.Duration { return time.Duration(l.keep) * l.step() }

// history is the activity of a queue. The current slot is kept as a Slot. A completed one is
// appended to the log of the finest level. When a slot of a coarser level is complete, it is
// summed up from the finer level. All this happens in roll, before the history is counted in
// or read; the caller passes the number of the current slot.
type history struct {
	queue string

	mu        sync.Mutex
	at        int64 // number of the current slot
	some      bool  // the current slot has activity
	last      int64 // number of the last slot with activity, or of the first slot
	now       Slot
	met       uint64 // number of events counted
	logs      [len(levels)]journal
	heldBytes int64 // bytes of the logs in the budget
	gone      bool  // dropped: another may have replaced it
}

// journal is a log of slots with activity. For each it has the distance from the number of
// the previous slot, the length of the content, and the content.
type journal struct {
	b     []byte
	start int   // offset of the first slot kept
	base  int64 // number before the first
	last  int64 // number of the last
}

func (j *journal) append(at int64, s *Slot) {
	content := s.append(make([]byte, 0, 128))
	if j.start == len(j.b) {
		j.b, j.start, j.base, j.last = j.b[:0], 0, at, at
	}
	j.b = binary.AppendUvarint(j.b, uint64(at-j.last))
	j.b = binary.AppendUvarint(j.b, uint64(len(content)))
	j.b = append(j.b, content...)
	j.last = at
}

// each calls f for the slots, oldest first, until f returns false.
func (j *journal) each(f func(at int64, r *reader) bool) {
	r, at := reader(j.b[j.start:]), j.base
	for len(r) > 0 {
		at += int64(r.next())
		n := r.next()
		one := r[:n]
		r = r[n:]
		if !f(at, &one) {
			return
		}
	}
}

// size is the number of bytes kept.
func (j *journal) size() int { return len(j.b) - j.start }

// forget drops the oldest slots while f returns true.
func (j *journal) forget(f func(at int64) bool) {
	r, at := reader(j.b[j.start:]), j.base
	for len(r) > 0 {
		next := at + int64(r.next())
		if !f(next) {
			break
		}
		n := r.next()
		r = r[n:]
		at, j.start, j.base = next, len(j.b)-len(r), next
	}
	// The space of dropped slots is freed once it is half of the buffer.
	if j.start > 0 && j.start >= len(j.b)/2 {
		if j.size() == 0 {
			*j = journal{last: j.last, base: j.last}
			return
		}
		j.b, j.start = append(make([]byte, 0, j.size()*5/4), j.b[j.start:]...), 0
	}
}

// back is the number of slots by which the clock may step back. After a larger step all
// slots are dropped, since they would be in the future.
const back = 6

// roll advances the history to slot n. It logs and sums the completed slots, and drops those
// that are too old.
func (h *history) roll(n int64, b *budget) {
	if n <= h.at {
		if n < h.at-back {
			h.at, h.some, h.now, h.logs = n, false, Slot{}, [len(levels)]journal{}
			b.charge(h)
		}
		return
	}
	if h.some {
		h.logs[0].append(h.at, &h.now)
		h.some, h.now = false, Slot{}
	}
	for i := 1; i < len(levels); i++ {
		fine, coarse := levels[i-1].slots, levels[i].slots
		was := h.at / coarse
		if was == n/coarse {
			break
		}
		var sum Slot
		some := false
		h.logs[i-1].each(func(at int64, r *reader) bool {
			if at*fine/coarse == was {
				some = true
				sum.read(r)
			}
			return true
		})
		if some {
			h.logs[i].append(was, &sum)
		}
	}
	h.at = n
	h.expire()
	b.charge(h)
}

// expire drops slots beyond their retention.
func (h *history) expire() {
	for i, l := range levels {
		oldest := h.at/l.slots - l.keep + 1
		h.logs[i].forget(func(at int64) bool { return at < oldest })
	}
}

// shrink drops the oldest slots of each level until at most the given number of bytes is
// kept, half of them of the finest level.
func (h *history) shrink(most int64) {
	share := most / 2
	for i := range h.logs {
		j := &h.logs[i]
		j.forget(func(int64) bool { return int64(j.size()) > share })
		share = most / 4
	}
}

// capacity is the size of the logs in bytes.
func (h *history) capacity() (n int64) {
	for i := range h.logs {
		n += int64(cap(h.logs[i].b))
	}
	return n
}

// read adds the activity since slot from to into. Each slot of into is step of the finest slots
// long. It reads the log of level lvl, and the logs of finer levels for slots that are
// not summed there yet.
func (h *history) read(from int64, lvl int, step int64, into []Slot) {
	edge := from
	for i := lvl; i >= 0; i-- {
		n := levels[i].slots
		h.logs[i].each(func(at int64, r *reader) bool {
			if at *= n; at >= edge {
				if k := (at - from) / step; k < int64(len(into)) {
					into[k].read(r)
				}
			}
			return true
		})
		edge = max(edge, h.at/n*n)
	}
	if k := (h.at - from) / step; h.some && h.at >= from && k < int64(len(into)) {
		into[k].add(&h.now)
	}
}
