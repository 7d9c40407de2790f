package sqlengine

import (
	"context"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// ids are the ids that this process has reserved.
type ids struct {
	mu        sync.Mutex
	next, end engine.ID // the first that is left, and the one after the last
}

// take returns n new ids in order. Calls do not wait for one that reserves ids: it may need a
// connection that their transactions hold.
func (e *Engine) take(ctx context.Context, n int) (ids []engine.ID, err error) {
	if ids = e.ids.some(n); len(ids) == n {
		return ids, nil
	}
	var blocks []engine.ID
	err = e.beside(ctx, "push", func(ctx context.Context) (err error) {
		blocks, err = e.store.IDs(ctx, (n-len(ids)+BlockSize-1)/BlockSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, first := range blocks {
		next := first
		for ; len(ids) < n && next < first+BlockSize; next++ {
			ids = append(ids, next)
		}
		e.ids.add(next, first+BlockSize)
	}
	return sorted(ids), nil
}

// some returns up to n ids that are left.
func (s *ids) some(n int) (ids []engine.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; len(ids) < n && s.next < s.end; s.next++ {
		ids = append(ids, s.next)
	}
	return ids
}

// add adds reserved ids unless greater ones are left, because later messages get greater ids.
func (s *ids) add(next, end engine.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next < end && (next > s.next || s.next == s.end) {
		s.next, s.end = next, end
	}
}

// drop forgets the ids that are left, in case another process has the same.
func (s *ids) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = s.end
}
