package servertest

import (
	"sync"
	"testing"
)

// Once makes a value once for all tests of the process: see Lasting.
type Once[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
}

// Get returns the value. The first call makes it.
func (o *Once[T]) Get(t testing.TB, start func(t testing.TB) T) T {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.made {
		o.value = start(Lasting(t))
		o.made = true
	}
	return o.value
}
