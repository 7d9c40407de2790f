package trend

import (
	"encoding/binary"
	"sync"
	"time"
)

// Resolution is the length of the finest slots.
const Resolution = 10 * time.Second

// level is a length of slots, and for how long they are kept.
type level struct {
	slots int64 // how many of the finest it spans
	keep  int64 // how many of its own are kept
}

var levels = [...]level{{1, 90}, {6, 360}, {60, 432}}

func (l level) step() time.Duration  { return time.Duration(l.slots) * Resolution }
func (l level) reach() time.Duration { return time.Duration(l.keep) * l.step() }

// history is what happened to a queue. The slot that fills is at hand; one that is over is
// written to the log of the finest level, and when a slot of a coarser level is over its
// parts are summed up there. All that is done when somebody comes to count or to look, by
// the number of the finest slot, which the caller knows.
type history struct {
	queue string

	mu   sync.Mutex
	at   int64 // the number of the slot that fills
	some bool  // something happened in it
	last int64 // the number of the one in which something happened last, or that it began with
	now  Slot
	met  uint64 // how often something was counted
	logs [len(levels)]journal
	held int64 // bytes of the logs, as the budget knows them
	gone bool  // it is forgotten: another may have taken its place
}

// journal are slots in which something happened, one written behind the other: how far its
// number lies behind that of the one before, its length and itself.
type journal struct {
	b     []byte
	start int   // of the first that is kept
	base  int64 // the number that the first counts from
	last  int64 // the number of the last
}

func (j *journal) append(at int64, s *Slot, scratch []byte) []byte {
	scratch = s.append(scratch[:0])
	if j.start == len(j.b) {
		j.b, j.start, j.base, j.last = j.b[:0], 0, at, at
	}
	j.b = binary.AppendUvarint(j.b, uint64(at-j.last))
	j.b = binary.AppendUvarint(j.b, uint64(len(scratch)))
	j.b = append(j.b, scratch...)
	j.last = at
	return scratch
}

// each calls f for the slots from the first on, until it returns false.
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

// size is how many bytes are kept.
func (j *journal) size() int { return len(j.b) - j.start }

// forget forgets the first slots, as long as f says so.
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
	// What is forgotten gives its room back once it is half of all.
	if j.start > 0 && j.start >= len(j.b)/2 {
		if j.size() == 0 {
			*j = journal{last: j.last, base: j.last}
			return
		}
		j.b, j.start = append(make([]byte, 0, j.size()*5/4), j.b[j.start:]...), 0
	}
}

// back is by how many slots the clock may step back; when it steps further all is
// forgotten, as it would lie in the future.
const back = 6

// roll goes on to the slot of a number.
func (h *history) roll(n int64, b *budget) {
	if n <= h.at {
		if n < h.at-back {
			h.at, h.some, h.now, h.logs = n, false, Slot{}, [len(levels)]journal{}
			b.hold(h)
		}
		return
	}
	var scratch []byte
	if h.some {
		scratch = h.logs[0].append(h.at, &h.now, make([]byte, 0, 128))
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
			scratch = h.logs[i].append(was, &sum, scratch)
		}
	}
	h.at = n
	h.expire()
	b.hold(h)
}

// expire forgets what is older than is kept.
func (h *history) expire() {
	for i, l := range levels {
		oldest := h.at/l.slots - l.keep + 1
		h.logs[i].forget(func(at int64) bool { return at < oldest })
	}
}

// shrink forgets what lies furthest back at each level until no more than so many bytes are
// kept, half of them of the finest.
func (h *history) shrink(most int64) {
	share := most / 2
	for i := range h.logs {
		j := &h.logs[i]
		j.forget(func(int64) bool { return int64(j.size()) > share })
		share = most / 4
	}
}

// capacity is how many bytes the logs take.
func (h *history) capacity() (n int64) {
	for i := range h.logs {
		n += int64(cap(h.logs[i].b))
	}
	return n
}

// read adds what happened since the slot of a number to slots of step finest ones each,
// from the logs of a level and, for what is not summed up there yet, of those below it.
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
