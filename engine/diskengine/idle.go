package diskengine

import (
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// forgetIdle forgets empty queues, and drops dead messages, remembered keys and finished messages
// after their time.
func (e *Engine) forgetIdle() error {
	if now := time.Now(); now.Sub(e.forgotIdle) < forgetEvery {
		return nil
	} else {
		e.forgotIdle = now
	}
	var empty, over []string
	for after, some := "", []string(nil); ; {
		e.store.Mu.Lock()
		some = e.names.After(some[:0], after, store.StepItems)
		for _, name := range some {
			after = name
			q := e.queues[name]
			e.forgetCursors(q)
			switch {
			case len(e.queues) > fewQueues && q.empty():
				empty = append(empty, name)
			case q.finished+q.listed > 0 || q.dead > 0 && q.settings != nil && q.settings.DeadKeep > 0:
				over = append(over, name)
			}
		}
		e.store.Mu.Unlock()
		if len(some) < store.StepItems {
			break
		}
	}
	e.store.Mu.Lock()
	e.leases.Shrink()
	e.store.Mu.Unlock()
	for e.leases.Trim() {
	}
	for some := range slices.Chunk(empty, store.StepItems) {
		c := e.call(e.store.Life, "tidy", new(scratch))
		if err := c.step(func() error { c.forget(some); return nil }); err != nil {
			return err
		}
	}
	for _, name := range over {
		c := e.call(e.store.Life, "tidy", new(scratch))
		err := c.step(func() error {
			q, err := c.visit(name, false)
			if q == nil || err != nil {
				return err
			}
			defer e.weigh(q)
			if err := c.forgetOver(q); err != nil {
				return err
			}
			return c.dropOver(q)
		})
		e.watchers.Hint(c.hints...)
		if err != nil {
			return err
		}
	}
	return nil
}

const forgetEvery = 10 * time.Second

// fewQueues is how many queues are kept even if they are empty.
const fewQueues = 1024
