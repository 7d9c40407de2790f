// Package hint holds the functions to call when a queue may have something to lease sooner
// than the engine said.
package hint

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watchers are the functions that an engine's Watch was given. The zero value has none.
// Its methods may be called from many goroutines.
type Watchers struct {
	mu   sync.Mutex                 // guards changes of list
	list atomic.Pointer[[]*watcher] // never changed, only replaced
}

// watcher is one call of Watch; its address tells it from others.
type watcher struct{ fn func(queue string) }

// Watch has fn called with each hint until stop is called, which may be more than once.
// A hint that is being given then may still arrive.
func (w *Watchers) Watch(fn func(queue string)) (stop func()) {
	x := &watcher{fn}
	w.change(func(list []*watcher) []*watcher { return append(list, x) })
	return func() {
		w.change(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(y *watcher) bool { return y == x })
		})
	}
}

// change replaces the list by what do makes of a copy.
func (w *Watchers) change(do func([]*watcher) []*watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := do(slices.Clone(w.all()))
	w.list.Store(&list)
}

func (w *Watchers) all() []*watcher {
	if list := w.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Any reports whether anybody watches.
func (w *Watchers) Any() bool { return len(w.all()) > 0 }

// Hint tells all watchers about queues, on the caller's goroutine. The caller holds no
// lock that a watcher, or anything that waits for it, may want.
func (w *Watchers) Hint(queues ...string) {
	for _, x := range w.all() {
		for _, q := range queues {
			x.fn(q)
		}
	}
}
