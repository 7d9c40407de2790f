package notify

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Lines limits log lines that outsiders can trigger as often as they like. It decides which
// lines to write, and counts the lines skipped before each of them. It is safe for concurrent
// use.
type Lines struct {
	limit *rate.Limiter

	mu      sync.Mutex
	skipped int
}

// NewLines returns Lines that allow first lines at once, and then one in each interval of every.
// After a quiet time they again allow up to first lines at once.
func NewLines(first int, every time.Duration) *Lines {
	return &Lines{limit: rate.NewLimiter(rate.Every(every), first)}
}

// Skip counts a line that the caller skips.
func (l *Lines) Skip() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped++
}

// Next reports whether to write the next line, and how many were skipped since the last one
// written.
func (l *Lines) Next() (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.skipped++
		return 0, false
	}
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}
