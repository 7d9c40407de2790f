package duration

import (
	"context"
	"time"
)

// Sleep waits for d or until ctx ends, and reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	Await(ctx.Done(), d)
	return ctx.Err() == nil
}

// Await waits up to d until done is closed or has a token, and reports whether that came.
func Await(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// Returns calls f, and reports whether it returned within d. Otherwise f goes on.
func Returns(f func(), d time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return Await(done, d)
}
