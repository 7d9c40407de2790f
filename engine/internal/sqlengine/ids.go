package sqlengine

import (
	"context"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// ids are those that this process has reserved.
type ids struct {
	mu         sync.Mutex
	next, last engine.ID
}

// take returns the first of n ids in a row that nobody had.
func (e *Engine) take(ctx context.Context, n int) (engine.ID, error) {
	if first := e.ids.some(n); first != 0 {
		return first, nil
	}
	// No call waits for the one that reserves more: it may itself wait for a connection
	// which the other's transaction holds.
	var first, last engine.ID
	err := e.beside(ctx, "push", func(ctx context.Context) (err error) {
		first, last, err = e.store.IDs(ctx, n)
		return err
	})
	if err != nil {
		return 0, err
	}
	e.ids.add(first+engine.ID(n), last)
	return first, nil
}

// some returns the first of n ids; 0: there are not so many.
func (s *ids) some(n int) engine.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 || s.next+engine.ID(n)-1 > s.last {
		return 0
	}
	first := s.next
	s.next += engine.ID(n)
	return first
}

// add takes ids in, unless greater ones are left: what comes later gets a greater one.
func (s *ids) add(next, last engine.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next > s.next || s.next > s.last {
		s.next, s.last = next, last
	}
}

// drop gives up what is left, in case that somebody else has the same.
func (s *ids) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.last = 0, 0
}
