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
	e.ids.mu.Lock()
	defer e.ids.mu.Unlock()
	if e.ids.next == 0 || e.ids.next+engine.ID(n)-1 > e.ids.last {
		first, last, err := e.store.IDs(ctx, n)
		if err != nil {
			return 0, err
		}
		e.ids.next, e.ids.last = first, last
	}
	first := e.ids.next
	e.ids.next += engine.ID(n)
	return first, nil
}
