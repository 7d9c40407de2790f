package diskengine

import "github.com/tarryhq/tarry/engine/diskengine/internal/store"

// readyHeap is a heap of ready messages, the next to be leased first.
type readyHeap []store.Item

// leasedBefore reports whether t is leased before o: by priority, then due time, then id.
func leasedBefore(t, o *store.Item) bool {
	if t.Priority != o.Priority {
		return t.Priority < o.Priority
	}
	return t.Position().Before(o.Position())
}

func (h *readyHeap) push(t store.Item) {
	s := append(*h, t)
	at := len(s) - 1
	for at > 0 {
		up := (at - 1) / 2
		if !leasedBefore(&t, &s[up]) {
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
	s[last] = store.Item{}
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
		if kid+1 < last && leasedBefore(&s[kid+1], &s[kid]) {
			kid++
		}
		if !leasedBefore(&s[kid], &t) {
			break
		}
		s[at] = s[kid]
		at = kid
	}
	s[at] = t
	*h = s
}
