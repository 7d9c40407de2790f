package sqlengine

import (
	"context"
	"time"
)

// wholeWithin bounds the whole look at one queue.
const wholeWithin = 5 * time.Minute

// lookWhole starts a task that makes the whole looks that are due, one after another. No lease
// waits for it.
func (e *Engine) lookWhole(queues []int64) {
	if !e.looking.CompareAndSwap(false, true) {
		return
	}
	e.tasks.Go(func() {
		defer e.looking.Store(false)
		for _, q := range e.lowBounds.due(queues) {
			e.lookWholeAt(q)
		}
	})
}

// lookWholeAt makes the whole look at a queue, and gives a hint for what it found.
func (e *Engine) lookWholeAt(queue int64) {
	ctx, cancel := context.WithTimeout(e.untilClose, wholeWithin)
	defer cancel()
	sent := time.Now()
	now, heads, err := e.store.Heads(ctx, lowestOf([]int64{queue}))
	if err != nil { // it will be due again
		return
	}
	h := &heads[0]
	e.lowBounds.whole(h, e.clock(now).UnixMilli(), time.Since(sent))
	if e.answers.sooner(queue, max(min(h.Waiting, h.Leased), h.Paused)) {
		e.watchers.Hint(h.Name)
	}
}
