package httpengine

import (
	"slices"
	"sync"
)

const (
	// setLeast is how many queues are worth a set: the names of fewer cost little.
	setLeast = 32
	// setsMost bounds the sets remembered; the server lets go of what is not polled.
	setsMost = 64
)

// sets are the sets of queues that the server keeps and that are not being polled, the
// latest last.
type sets struct {
	mu   sync.Mutex
	kept []set
}

type set struct {
	queues []string
	id     string
}

// take takes out a set of just these queues, if there is one.
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
