package memengine

import "slices"

// watcher is one call of Watch; its address tells it from others.
type watcher struct{ fn func(queue string) }

// Watch calls fn whenever a queue may have something to lease sooner than the
// last Grant said, from the goroutine of the call that made it so and outside of
// all of a queue's locks. No hint is lost.
func (e *Engine) Watch(fn func(queue string)) (stop func()) {
	w := &watcher{fn}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers = append(slices.Clip(e.watchers), w) // clipped: hint reads the old one unlocked
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.watchers = slices.DeleteFunc(slices.Clone(e.watchers), func(x *watcher) bool { return x == w })
	}
}

// hint tells the watchers about a queue. No lock may be held.
func (e *Engine) hint(queue string) {
	e.mu.RLock()
	watchers := e.watchers
	e.mu.RUnlock()
	for _, w := range watchers {
		w.fn(queue)
	}
}
