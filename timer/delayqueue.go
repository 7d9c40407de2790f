package timer

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// clockCheck is the longest sleep while something is pending, so that a step of
// the wall clock is noticed within this time.
const clockCheck = time.Second

// DelayQueue is a blocking queue. Its elements can be taken once they are due,
// in the order of due times. Takers are served in the order in which they came:
// the first of them sleeps until the head is due, and the others sleep until
// they are first. So one element wakes one taker.
//
// The wall clock decides what is due; a step of it is noticed within a second.
// Due times are kept to the nanosecond. Elements with the same due time come out
// in the order in which they were put. As with a [Heap], due times lie within 146
// years of when the queue was made. All methods may be called by many goroutines
// at once.
type DelayQueue[T any] struct {
	mu     sync.Mutex
	heap   *Heap[T]
	takers list.List // of chan struct{} with room for one wake-up
}

// NewDelayQueue returns an empty queue.
func NewDelayQueue[T any]() *DelayQueue[T] {
	return &DelayQueue[T]{heap: NewHeap[T](time.Now())}
}

// Len returns the number of elements, due or not.
func (q *DelayQueue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heap.Len()
}

// Put adds v, to be taken at due or later, and returns its handle.
func (q *DelayQueue[T]) Put(due time.Time, v T) Handle {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.heap.Schedule(due, v)
	q.headed(h)
	return h
}

// Remove takes an element out before it is due, or returns false when the
// handle is stale.
func (q *DelayQueue[T]) Remove(h Handle) (T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heap.Cancel(h)
}

// Reset moves an element to another due time, or returns false when the handle is
// stale.
func (q *DelayQueue[T]) Reset(h Handle, due time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.heap.Reset(h, due) {
		return false
	}
	q.headed(h)
	return true
}

// Due returns the due time of an element, or false when the handle is stale.
func (q *DelayQueue[T]) Due(h Handle) (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heap.Due(h)
}

// Peek returns the head, due or not, without removing it, or false when the queue
// is empty.
func (q *DelayQueue[T]) Peek() (Timer[T], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heap.Peek()
}

// headed wakes the first taker when h has become the head. One that sleeps for
// an earlier head needs no wake-up: it looks again when it wakes.
func (q *DelayQueue[T]) headed(h Handle) {
	if first := q.heap.heap.items[0]; first.index == h.index() {
		q.wake()
	}
}

func (q *DelayQueue[T]) wake() {
	if first := q.takers.Front(); first != nil {
		select {
		case first.Value.(chan struct{}) <- struct{}{}:
		default: // it has been woken already
		}
	}
}

// Poll takes the head if it is due, and never blocks.
func (q *DelayQueue[T]) Poll() (T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v, _, ok := q.poll()
	return v, ok
}

// poll takes the head if it is due. Otherwise it returns how long to sleep;
// negative: until woken.
func (q *DelayQueue[T]) poll() (v T, sleep time.Duration, ok bool) {
	now := time.Now()
	if t, ok := q.heap.Poll(now); ok {
		return t.Value, 0, true
	}
	next, pending := q.heap.Next()
	if !pending {
		return v, -1, false
	}
	return v, min(next.Sub(now), clockCheck), false
}

// Take blocks until an element is due and takes it, or returns ctx's error.
func (q *DelayQueue[T]) Take(ctx context.Context) (T, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err
	}
	if q.takers.Len() == 0 {
		if v, _, ok := q.poll(); ok {
			return v, nil
		}
	}
	wake := make(chan struct{}, 1)
	place := q.takers.PushBack(wake)
	defer func() {
		q.takers.Remove(place)
		q.wake() // the taker that is first now
	}()
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for {
		var due <-chan time.Time
		if q.takers.Front() == place {
			v, sleep, ok := q.poll()
			if ok {
				return v, nil
			}
			if sleep >= 0 {
				if timer == nil {
					timer = time.NewTimer(sleep)
				} else {
					timer.Reset(sleep)
				}
				due = timer.C
			}
		}
		q.mu.Unlock()
		var err error
		select {
		case <-due:
		case <-wake:
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		if err != nil {
			var zero T
			return zero, err
		}
	}
}
