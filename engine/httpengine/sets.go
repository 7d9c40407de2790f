package httpengine

import (
	"slices"
	"sync"
)

const (
	// minSetQueues is the least number of queues for a set: fewer names cost little.
	minSetQueues = 32
	// maxSets bounds the sets remembered here; the server drops those that nobody polls.
	maxSets = 64
)

// sets holds the sets of queues that the server keeps and nobody polls right now, the latest
// last.
type sets struct {
	mu       sync.Mutex
	idleSets []set
}

type set struct {
	queues []string
	id     string
}

// take removes and returns the set of exactly these queues, if there is one.
func (s *sets) take(queues []string) (kept set, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idleSets) - 1; i >= 0; i-- {
		if slices.Equal(s.idleSets[i].queues, queues) {
			kept = s.idleSets[i]
			s.idleSets = slices.Delete(s.idleSets, i, i+1)
			return kept, true
		}
	}
	return set{}, false
}

// put keeps a set until it is taken.
func (s *sets) put(kept set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idleSets) == maxSets {
		s.idleSets = slices.Delete(s.idleSets, 0, 1)
	}
	s.idleSets = append(s.idleSets, kept)
}
