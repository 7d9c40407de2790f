package memengine

import (
	"context"
	"maps"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Peek returns the ready message of each queue that is leased first, without its body.
func (e *Engine) Peek(ctx context.Context, queues []string) ([]engine.Info, error) {
	if err := e.calls.Enter(ctx, "peek"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	first := make([]engine.Info, len(queues))
	for i, name := range queues {
		e.with(name, false, func(q *queue) {
			if m := q.nextReady(); m != nil {
				first[i] = q.info(m, false)
			}
		})
	}
	return first, nil
}

// Find returns the queue of each id. It asks one queue after the other.
func (e *Engine) Find(ctx context.Context, ids []engine.ID) ([]string, error) {
	if err := e.calls.Enter(ctx, "find"); err != nil {
		return nil, err
	}
	defer e.calls.Leave()
	found := make([]string, len(ids))
	left := len(ids)
	for _, q := range e.all() {
		if left == 0 {
			break
		}
		e.visit(q, func(q *queue) {
			for i, id := range ids {
				if found[i] == "" && q.find(engine.Ref{ID: id}) != nil {
					found[i] = q.name
					left--
				}
			}
		})
	}
	return found, nil
}

// all returns all queues.
func (e *Engine) all() []*queue {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Collect(maps.Values(e.queues))
}
