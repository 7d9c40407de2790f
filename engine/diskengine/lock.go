package diskengine

import "sync"

// lock is store.mu. Tests check that it is not held for long.
type lock struct {
	mu   sync.Mutex
	held func(begins bool) // tests see with it how long the lock is held; may be nil
}

// Lock implements sync.Locker.
func (l *lock) Lock() {
	l.mu.Lock()
	if l.held != nil {
		l.held(true)
	}
}

// Unlock implements sync.Locker.
func (l *lock) Unlock() {
	if l.held != nil {
		l.held(false)
	}
	l.mu.Unlock()
}

// The lock is held for at most so many items, or bytes; then others are let in.
const (
	stepItems = 256
	stepBytes = 256 << 10
)
