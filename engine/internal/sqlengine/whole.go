package sqlengine

import (
	"context"
	"time"
)

// wholeWithin is how long the whole look at one queue may take.
const wholeWithin = 5 * time.Minute

// lookWhole begins whole looks at those of queues at which they are due, one after the other.
// No lease waits for them.
func (e *Engine) lookWhole(queues []int64) {
	if !e.looking.CompareAndSwap(false, true) {
		return
	}
	e.tasks.Go(func() {
		defer e.looking.Store(false)
		for _, q := range e.floors.due(queues) {
			e.lookWholeAt(q)
		}
	})
}

// lookWholeAt makes the whole look at a queue, and hints what it has found.
func (e *Engine) lookWholeAt(queue int64) {
	ctx, cancel := context.WithTimeout(e.untilClose, wholeWithin)
	defer cancel()
	sent := time.Now()
	now, heads, err := e.store.Heads(ctx, grounds([]int64{queue}))
	if err != nil { // it is due again later
		return
	}
	h := &heads[0]
	e.floors.whole(h, e.clock(now).UnixMilli(), time.Since(sent))
	if e.told.sooner(queue, max(min(h.Waiting, h.Leased), h.Paused)) {
		e.watchers.Hint(h.Name)
	}
}
