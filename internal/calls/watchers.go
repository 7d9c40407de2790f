package calls

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watchers are the functions passed to an engine's Watch. The zero value has none. Its
// methods are safe for concurrent use.
type Watchers struct {
	mu   sync.Mutex                 // guards changes of list
	list atomic.Pointer[[]*watcher] // never changed, only replaced
}

// watcher is one call of Watch, identified by its address.
type watcher struct{ fn func(queue string) }

// Watch calls fn with each hint until stop is called. stop may be called more than once. A
// hint already under way may still arrive after it.
func (w *Watchers) Watch(fn func(queue string)) (stop func()) {
	x := &watcher{fn}
	w.change(func(list []*watcher) []*watcher { return append(list, x) })
	return func() {
		w.change(func(list []*watcher) []*watcher {
			return slices.DeleteFunc(list, func(y *watcher) bool { return y == x })
		})
	}
}

// change replaces the list with the result of do for a copy.
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

// Any reports whether there is a watcher.
func (w *Watchers) Any() bool { return len(w.all()) > 0 }

// Hint calls all watchers for each queue, on the caller's goroutine. The caller must not hold
// a lock for which a watcher may wait, even indirectly.
func (w *Watchers) Hint(queues ...string) {
	for _, x := range w.all() {
		for _, q := range queues {
			x.fn(q)
		}
	}
}
