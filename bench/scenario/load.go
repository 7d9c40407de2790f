package scenario

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Each calls call for the numbers 0 to count-1, batch at a time, from n clients, as fast as
// they can.
func Each(b *testing.B, n, count, batch int, call func(ctx context.Context, from, to int) error) {
	b.Helper()
	ctx, end := context.WithTimeout(b.Context(), longest)
	defer end()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var (
		next    atomic.Int64
		callers sync.WaitGroup
	)
	for range min(n, (count+batch-1)/batch) {
		callers.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(batch))) - batch
				if from >= count {
					return
				}
				if err := call(ctx, from, min(from+batch, count)); err != nil {
					fail(err)
				}
			}
		})
	}
	callers.Wait()
	Must(b, context.Cause(ctx))
}

// Filled is a System with work to do after Fill has scheduled messages.
type Filled interface {
	Filled(ctx context.Context, queue string) error
}

// Fill schedules n messages, each a day or more away.
func Fill(b *testing.B, s System, queue string, n int) {
	b.Helper()
	soonest := time.Now().Add(24 * time.Hour)
	Each(b, Clients, n, 500, func(ctx context.Context, from, to int) error {
		return s.PushMany(ctx, queue, from, to, func(i int) time.Time { return soonest.Add(far(i)) })
	})
	if s, ok := s.(Filled); ok {
		Must(b, s.Filled(b.Context(), queue))
	}
}
