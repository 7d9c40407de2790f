package diskengine

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/timer"
)

const (
	window   = 1 << 16    // ready messages among which the order is exact
	nearFull = 2 * window // entries of a queue in memory, at most
	nearOver = 4096       // entries forgotten at a time when there are more
)

// near is the part of a queue's waiting messages that stands in memory: alarms
// of what is not due and a heap by (priority, due, id) of what is. It reads no
// clock and is not safe for concurrent use.
type near struct {
	slots []slot
	free  []uint32
	at    map[engine.ID]uint32
	ready []uint32 // heap
	later alarms[uint32]
	now   int64 // up to here what waited later is ready
}

// slot is one waiting message.
type slot struct {
	position
	priority uint32
	heap     int32 // place in ready; -1: later
	timer    timer.Handle
	seq      uint64 // the batch that put it there
}

func newNear(now int64) near {
	return near{at: make(map[engine.ID]uint32), now: now}
}

func (n *near) len() int { return len(n.at) }

// put adds a message, or moves it when it is there already.
func (n *near) put(p position, priority uint32, seq uint64) {
	n.remove(p.id)
	var i uint32
	if k := len(n.free); k > 0 {
		i, n.free = n.free[k-1], n.free[:k-1]
	} else {
		i = uint32(len(n.slots))
		n.slots = append(n.slots, slot{})
	}
	n.slots[i] = slot{position: p, priority: priority, heap: -1, seq: seq}
	n.at[p.id] = i
	n.place(i)
}

// place puts a slot into the heap or sets its alarm.
func (n *near) place(i uint32) {
	if s := &n.slots[i]; s.position.at > n.now {
		s.timer = n.later.set(s.position.at, i)
	} else {
		n.push(i)
	}
}

// remove forgets a message and reports whether it was there.
func (n *near) remove(id engine.ID) bool {
	i, ok := n.at[id]
	if !ok {
		return false
	}
	s := &n.slots[i]
	if s.heap >= 0 {
		n.unheap(int(s.heap))
	} else {
		n.later.cancel(i, s.timer)
	}
	n.release(i)
	return true
}

// release gives a slot free that is in neither the heap nor has an alarm.
func (n *near) release(i uint32) {
	delete(n.at, n.slots[i].id)
	n.free = append(n.free, i)
	if len(n.at) == 0 { // give the memory of a crowd back
		if len(n.slots) > 1024 {
			*n = newNear(n.now)
		} else {
			n.slots, n.free = n.slots[:0], n.free[:0]
		}
	}
}

// removeAt forgets a message if it stands at just this place.
func (n *near) removeAt(p position) {
	if i, ok := n.at[p.id]; ok && n.slots[i].position == p {
		n.remove(p.id)
	}
}

// advance makes ready what is due. When the clock stepped back, what is no
// longer due waits again.
func (n *near) advance(now int64) {
	if now < n.now {
		n.now = now
		n.unfire()
		return
	}
	n.now = now
	for i := range n.later.due(now) {
		n.push(i)
	}
}

// unfire has what is not due any more wait again.
func (n *near) unfire() {
	due := n.ready[:0]
	for _, i := range n.ready {
		if n.slots[i].position.at <= n.now {
			due = append(due, i)
			continue
		}
		n.slots[i].heap = -1
		n.place(i)
	}
	if len(due) == len(n.ready) {
		return
	}
	n.ready = due
	for k := len(due) - 1; k >= 0; k-- {
		n.down(k, n.ready[k])
	}
}

// take removes the first of the ready, by (priority, due, id), and appends them.
func (n *near) take(most int, taken []slot) []slot {
	most = max(0, min(most, len(n.ready)))
	taken = slices.Grow(taken, most)
	for range most {
		i := n.ready[0]
		taken = append(taken, n.slots[i])
		n.unheap(0)
		n.release(i)
	}
	return taken
}

// next is the least due of what is not ready.
func (n *near) next() (int64, bool) { return n.later.next() }

// evict forgets all but the keep earliest and returns the position of the first
// one forgotten.
func (n *near) evict(keep int) position {
	all := make([]position, 0, len(n.at))
	for i := range n.slots {
		if p := n.slots[i].position; n.holds(uint32(i), p.id) {
			all = append(all, p)
		}
	}
	first := nth(all, keep)
	for _, p := range all[keep:] {
		n.remove(p.id)
	}
	return first
}

// forgetFrom forgets what is due at a position or behind it.
func (n *near) forgetFrom(first position) {
	for id, i := range n.at {
		if !n.slots[i].less(first) {
			n.remove(id)
		}
	}
}

func (n *near) holds(i uint32, id engine.ID) bool {
	at, ok := n.at[id]
	return ok && at == i
}

// nth returns the n-th least of some positions and moves those before it to the
// front: sorting them all takes ten times as long.
func nth(all []position, n int) position {
	lo, hi := 0, len(all)-1
	for lo < hi {
		pivot := all[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for all[i].less(pivot) {
				i++
			}
			for pivot.less(all[j]) {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return all[n]
		}
	}
	return all[n]
}

// The heap, with each slot knowing its place.

func (n *near) less(a, b uint32) bool {
	x, y := &n.slots[a], &n.slots[b]
	if x.priority != y.priority {
		return x.priority < y.priority
	}
	return x.less(y.position)
}

func (n *near) set(k int, i uint32) {
	n.ready[k] = i
	n.slots[i].heap = int32(k)
}

func (n *near) push(i uint32) {
	n.ready = append(n.ready, i)
	n.up(len(n.ready)-1, i)
}

func (n *near) unheap(k int) {
	last := len(n.ready) - 1
	i := n.ready[last]
	n.ready = n.ready[:last]
	if k == last {
		return
	}
	n.down(k, i)
	if n.ready[k] == i {
		n.up(k, i)
	}
}

func (n *near) up(k int, i uint32) {
	for k > 0 {
		parent := (k - 1) / 2
		if !n.less(i, n.ready[parent]) {
			break
		}
		n.set(k, n.ready[parent])
		k = parent
	}
	n.set(k, i)
}

func (n *near) down(k int, i uint32) {
	for {
		c := 2*k + 1
		if c >= len(n.ready) {
			break
		}
		if c+1 < len(n.ready) && n.less(n.ready[c+1], n.ready[c]) {
			c++
		}
		if !n.less(n.ready[c], i) {
			break
		}
		n.set(k, n.ready[c])
		k = c
	}
	n.set(k, i)
}
