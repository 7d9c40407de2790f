package sqlengine

import (
	"maps"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// stall is what others can hold of what an item needs: a message, a key, or a whole queue.
type stall struct {
	id         engine.ID
	queue, key string
}

// stalls are those for which calls have waited in vain, with when each is tried again. Items
// that need one of them are kept apart from others until it is free.
type stalls struct {
	mu    sync.Mutex
	until map[stall]time.Time
}

const (
	stallPause = 40 * time.Millisecond
	// stallKept is for how long one is known that nobody asks for any more.
	stallKept = 30 * time.Second
)

// none reports whether nothing is known to be held.
func (s *stalls) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.until) == 0 {
		return true
	}
	now := time.Now()
	maps.DeleteFunc(s.until, func(_ stall, until time.Time) bool { return now.Sub(until) > stallKept })
	return len(s.until) == 0
}

// of reports whether something is known to be held, and whether it is to be tried by now.
func (s *stalls) of(what stall) (held, try bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, held := s.until[what]
	return held, held && !time.Now().Before(until)
}

// add notes that something is held.
func (s *stalls) add(what stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[stall]time.Time)
	}
	s.until[what] = time.Now().Add(stallPause)
}

func (s *stalls) drop(what stall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, what)
}
