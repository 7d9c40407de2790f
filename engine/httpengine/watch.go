package httpengine

import (
	"maps"
	"slices"
	"sync"

	"github.com/tarryhq/tarry/internal/calls"
)

// watch hints at queues that this engine itself has changed. It does not learn of changes by
// others; LeaseWait waits for those on the server.
type watch struct {
	calls.Watchers

	mu     sync.Mutex
	queues map[string]struct{} // that messages were leased from
}

// maxQueues bounds the queues remembered.
const maxQueues = 10_000

// Watch calls fn after pushes, reschedules, settlements and the like of this engine. Changes
// by other clients show only in the answers of Lease and LeaseWait.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watch.Watch(fn) }

// leased notes that a later settlement may concern a queue: a token does not name its queue.
func (w *watch) leased(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = make(map[string]struct{})
	}
	if len(w.queues) < maxQueues {
		w.queues[queue] = struct{}{}
	}
}

// settled hints at every queue that a settlement may concern.
func (w *watch) settled() {
	if !w.Any() { // most programs do not watch
		return
	}
	w.mu.Lock()
	queues := slices.Collect(maps.Keys(w.queues))
	w.mu.Unlock()
	w.Hint(queues...)
}
