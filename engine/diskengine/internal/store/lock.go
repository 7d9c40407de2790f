package store

import "sync"

// Lock is Store.Mu. Tests check that it is not held for long.
type Lock struct {
	mu   sync.Mutex
	held func(begins bool) // shows tests how long the lock is held; may be nil
}

// Lock implements sync.Locker.
func (l *Lock) Lock() {
	l.mu.Lock()
	if l.held != nil {
		l.held(true)
	}
}

// Unlock implements sync.Locker.
func (l *Lock) Unlock() {
	if l.held != nil {
		l.held(false)
	}
	l.mu.Unlock()
}

// The lock is released for others after so many items or bytes.
const (
	StepItems = 256
	StepBytes = 256 << 10
)
