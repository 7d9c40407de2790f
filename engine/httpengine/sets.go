package httpengine

import (
	"slices"
	"sync"
)

const (
	// setLeast is the least number of queues for a set: fewer names cost little.
	setLeast = 32
	// setsMost bounds the sets remembered here; the server drops those that nobody polls.
	setsMost = 64
)

// sets holds the sets of queues that the server keeps and nobody polls right now, the latest
// last.
type sets struct {
	mu   sync.Mutex
	kept []set
}

type set struct {
	queues []string
	id     string
}

// take removes and returns the set of exactly these queues, if there is one.
func (s *sets) take(queues []string) (kept set, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.kept) - 1; i >= 0; i-- {
		if slices.Equal(s.kept[i].queues, queues) {
			kept = s.kept[i]
			s.kept = slices.Delete(s.kept, i, i+1)
			return kept, true
		}
	}
	return set{}, false
}

// put keeps a set until it is taken.
func (s *sets) put(kept set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == setsMost {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, kept)
}
