package tarry

import (
	"sync"
	"sync/atomic"
	"time"
)

// teller hands things to a function of the user's, one after the other, on a
// goroutine that lives only while there are any: whoever has something to tell does
// not wait for who is slow to hear it.
type teller[T any] struct {
	tell func(T)
	told func() // if not nil: called after each
	most int    // beyond so many untold things what is added is missed; 0: no bound
	miss func()

	untold atomic.Int64

	mu      sync.Mutex
	waiting []T
	spare   []T // the room of what was told before, kept up to spareTold
	busy    bool
	idle    chan struct{} // not nil: to be closed when nothing is left
}

// spareTold is the room for how many things stays while there are none.
const spareTold = 512

// add has all of xs told, in their order.
func (t *teller[T]) add(xs ...T) {
	if len(xs) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most > 0 && t.untold.Load() >= int64(t.most) {
		t.miss()
		return
	}
	t.waiting = append(t.waiting, xs...)
	t.untold.Add(int64(len(xs)))
	if !t.busy {
		t.busy = true
		go t.run()
	}
}

func (t *teller[T]) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.waiting) > 0 {
		batch := t.waiting
		t.waiting, t.spare = t.spare[:0], nil
		t.mu.Unlock()
		for i := range batch {
			t.tell(batch[i])
			t.untold.Add(-1)
			if t.told != nil {
				t.told()
			}
		}
		clear(batch)
		t.mu.Lock()
		t.spare = batch
	}
	t.busy = false
	if cap(t.waiting) < cap(t.spare) {
		t.waiting = t.spare[:0]
	}
	if t.spare = nil; cap(t.waiting) > spareTold {
		t.waiting = nil
	}
	if t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// flush waits until all is told, at most for d, and reports whether it is.
func (t *teller[T]) flush(d time.Duration) bool {
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
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
