package memengine

// Watch calls fn whenever a queue may have something to lease sooner than the last Grant
// said. fn runs on the goroutine of the call that caused it, without a queue's lock. No
// hint is lost.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// hint notifies the watchers of a queue. No lock may be held.
func (e *Engine) hint(queue string) { e.watchers.Hint(queue) }
