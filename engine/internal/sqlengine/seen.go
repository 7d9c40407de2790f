package sqlengine

import (
	"slices"
	"sync"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// seen caches queues as this process last saw them. From their settings a call guesses which
// queues it must lock, and its transaction checks the guess.
type seen struct {
	mu     sync.RWMutex
	queues map[int64]view
}

// view is the cached part of a queue.
type view struct {
	name     string
	settings *engine.Settings // nil: none is set
	revision uint64
}

// note records the queues that a transaction has read.
func (s *seen) note(heads []Heads) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range heads {
		h := &heads[i]
		if v, ok := s.queues[h.Num]; ok && v.revision == h.Revision {
			continue
		}
		v := view{name: h.Name, revision: h.Revision}
		if !h.Settings.Unset() {
			v.settings = new(h.Settings)
		}
		s.queues[h.Num] = v
	}
}

// of returns the queues for whose settings only returns true.
func (s *seen) of(queues []int64, only condition) (lock []int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, q := range queues {
		if v := s.queues[q]; v.settings != nil && only(v.settings) {
			lock = append(lock, q)
		}
	}
	slices.Sort(lock)
	return lock
}

// name adds the names of the queues to settlements.
func (s *seen) name(settlements []engine.Settlement, settled []engine.Settled) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range settled {
		if t, ok := token.Parse(settlements[i].Token); ok {
			settled[i].Queue = s.queues[int64(t.Queue)].name
		}
	}
}

// within reports whether all wanted queues are locked.
func within(wanted, locked []int64) bool {
	for _, q := range wanted {
		if _, ok := slices.BinarySearch(locked, q); !ok {
			return false
		}
	}
	return true
}
