package diskengine

import (
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// readyItem is a ready message, as the heap orders it: by priority, then due time, then id.
type readyItem struct {
	due      int64
	id       engine.ID
	priority uint32
	pos      uint32        // in src
	src      *store.Source // nil: it was in a memtable
	epoch    uint32        // Store.Epoch at that time
}

func (t *readyItem) before(o *readyItem) bool {
	if t.priority != o.priority {
		return t.priority < o.priority
	}
	return t.due < o.due || t.due == o.due && t.id < o.id
}

// readyHeap is a heap of readyItems, the next to be leased first.
type readyHeap []readyItem

func (h *readyHeap) push(t readyItem) {
	s := append(*h, t)
	at := len(s) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !t.before(&s[up]) {
			break
		}
		s[at] = s[up]
		at = up
	}
	s[at] = t
	*h = s
}

// pop removes the first item.
func (h *readyHeap) pop() {
	s := *h
	last := len(s) - 1
	t := s[last]
	s[last] = readyItem{}
	if s = s[:last]; last == 0 {
		*h = nil
		if cap(s) <= 1024 {
			*h = s
		}
		return
	}
	at := 0
	for {
		kid := 2*at + 1
		if kid >= last {
			break
		}
		if kid+1 < last && s[kid+1].before(&s[kid]) {
			kid++
		}
		if !s[kid].before(&t) {
			break
		}
		s[at] = s[kid]
		at = kid
	}
	s[at] = t
	*h = s
}
