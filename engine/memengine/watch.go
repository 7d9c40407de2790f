package memengine

// Watch calls fn whenever a queue may have something to lease sooner than the
// last Grant said, from the goroutine of the call that made it so and outside of
// all of a queue's locks. No hint is lost.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// hint tells the watchers about a queue. No lock may be held.
func (e *Engine) hint(queue string) { e.watchers.Hint(queue) }
