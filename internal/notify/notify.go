// Package notify tells the user what happens. Nothing waits for the user's functions
// (Notifier) or for the log (Logger), and what may happen thousands of times a second takes
// few lines of it (TroubleLog, Lines).
package notify

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// Notifier calls a user's function with one item at a time, on a goroutine of its own, so
// that a slow function holds up nothing else. The goroutine lives only while items wait.
type Notifier[T any] struct {
	Call   func(T)
	Called func() // called after each Call, if not nil
	Most   int    // while this many items are pending, Add drops further ones; 0: no bound
	Missed func() // called for each Add that dropped its items

	pending atomic.Int64

	mu      sync.Mutex
	waiting []T
	busy    bool
	idle    chan struct{} // not nil: closed when nothing is left
}

// Pending returns how many items wait, or are being passed to Call.
func (t *Notifier[T]) Pending() int { return int(t.pending.Load()) }

// Add queues xs, in order, or drops them all if too many items are pending.
func (t *Notifier[T]) Add(xs ...T) {
	if len(xs) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Most > 0 && t.pending.Load() >= int64(t.Most) {
		t.Missed()
		return
	}
	t.waiting = append(t.waiting, xs...)
	t.pending.Add(int64(len(xs)))
	if !t.busy {
		t.busy = true
		go t.run()
	}
}

func (t *Notifier[T]) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.waiting) > 0 {
		batch := t.waiting
		t.waiting = nil
		t.mu.Unlock()
		for i := range batch {
			t.Call(batch[i])
			t.pending.Add(-1)
			if t.Called != nil {
				t.Called()
			}
		}
		t.mu.Lock()
	}
	t.busy = false
	if t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Flush waits up to d until nothing is pending, and reports whether it succeeded.
func (t *Notifier[T]) Flush(d time.Duration) bool {
	t.mu.Lock()
	if !t.busy {
		t.mu.Unlock()
		return true
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	return duration.Await(idle, d)
}
