// Package sparse keeps a log from being filled by what others can bring about as often as
// they like.
package sparse

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Lines says which of many lines are written, and how many were left out before each. It
// may be used by many goroutines.
type Lines struct {
	limit *rate.Limiter

	mu   sync.Mutex
	left int
}

// New returns Lines of which the first few are written, and further ones at most one in
// every.
func New(first int, every time.Duration) *Lines {
	return &Lines{limit: rate.NewLimiter(rate.Every(every), first)}
}

// Skip notes a line that its writer leaves out.
func (l *Lines) Skip() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left++
}

// Next reports whether the next line is to be written, and how many were not since the
// last that was.
func (l *Lines) Next() (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}
