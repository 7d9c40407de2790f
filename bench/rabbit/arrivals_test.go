package rabbit

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// arrivals are messages that are pushed, each with its delay, and when they come.
type arrivals struct {
	delays []time.Duration // by message, in turn
	began  []time.Time     // of each push
	late   []time.Duration // by message; below zero when early
	seen   []atomic.Bool
	count  atomic.Int64
	last   atomic.Int64 // Unix nanoseconds: when the newest came
	all    chan struct{}
}

func newArrivals(n int, delays ...time.Duration) *arrivals {
	return &arrivals{
		delays: delays, began: make([]time.Time, n), late: make([]time.Duration, n), seen: make([]atomic.Bool, n),
		all: make(chan struct{}),
	}
}

func (a *arrivals) delay(i int) time.Duration { return a.delays[i%len(a.delays)] }

func (a *arrivals) push(ctx context.Context, s system, i int) error {
	a.began[i] = time.Now()
	return s.push(ctx, i, a.delay(i))
}

// arrived is what a handler does.
func (a *arrivals) arrived(i int) {
	now := time.Now()
	if a.seen[i].Swap(true) {
		return
	}
	a.late[i] = now.Sub(a.began[i]) - a.delay(i)
	a.last.Store(now.UnixNano())
	if int(a.count.Add(1)) == len(a.late) {
		close(a.all)
	}
}

// await waits until all have come.
func (a *arrivals) await(b *testing.B) {
	b.Helper()
	const longest = 2 * time.Minute
	select {
	case <-a.all:
	case <-time.After(longest):
		b.Fatalf("%d of %d have not come after %v", len(a.late)-int(a.count.Load()), len(a.late), longest)
	}
}

// of returns how late those with a delay were, in order, and how many were early.
func (a *arrivals) of(delay time.Duration) (late []time.Duration, early int) {
	for i, l := range a.late {
		if a.delay(i) != delay {
			continue
		}
		if l < 0 {
			early++
		}
		late = append(late, l)
	}
	slices.Sort(late)
	return late, early
}
