package httpengine

import (
	"sync"
	"sync/atomic"
)

// watchers are told of queues that this engine itself has changed. What others do on
// the server they do not hear of; whoever waits does so in LeaseWait, on the server.
type watchers struct {
	n  atomic.Int32 // of fns: most programs have none
	mu sync.Mutex

	fns    map[int]func(queue string)
	last   int
	queues map[string]struct{} // leased from since there are watchers
}

// maxQueues bounds the queues remembered.
const maxQueues = 10_000

// Watch calls fn after pushes, reschedules, settlements and the like of this engine.
// What others do on the server shows only in the answers of Lease; LeaseWait waits
// for that as well.
func (e *Engine) Watch(fn func(queue string)) (stop func()) {
	w := &e.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fns == nil {
		w.fns = make(map[int]func(string))
	}
	w.last++
	id := w.last
	w.fns[id] = fn
	w.n.Add(1)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, ok := w.fns[id]; ok {
			delete(w.fns, id)
			w.n.Add(-1)
		}
		if len(w.fns) == 0 {
			w.queues = nil
		}
	}
}

func (w *watchers) hint(queue string) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fn := range w.fns {
		fn(queue)
	}
}

// leased remembers that a settlement may concern a queue: tokens do not tell theirs.
func (w *watchers) leased(queue string) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = make(map[string]struct{})
	}
	if len(w.queues) < maxQueues {
		w.queues[queue] = struct{}{}
	}
}

// settled hints at all queues that a settlement may concern.
func (w *watchers) settled() {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for q := range w.queues {
		for _, fn := range w.fns {
			fn(q)
		}
	}
}
