package sqlengine

import (
	"context"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// ids are the ids that this process has reserved.
type ids struct {
	mu         sync.Mutex
	next, last engine.ID
}

// take returns the first of n new consecutive ids.
func (e *Engine) take(ctx context.Context, n int) (engine.ID, error) {
	if first := e.ids.some(n); first != 0 {
		return first, nil
	}
	// Calls do not wait for a call that reserves ids: it may need a connection that their
	// transactions hold.
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

// some returns the first of n ids; 0: fewer are left.
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

// add adds reserved ids unless greater ones are left, because later messages get greater ids.
func (s *ids) add(next, last engine.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next > s.next || s.next > s.last {
		s.next, s.last = next, last
	}
}

// drop forgets the ids that are left, in case another process has the same.
func (s *ids) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.last = 0, 0
}
