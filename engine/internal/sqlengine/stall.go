package sqlengine

import (
	"maps"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// stall is what an item needs and others may have locked: a message, a key, or a whole queue.
type stall struct {
	id         engine.ID
	queue, key string
}

// stalls holds the stalls for which calls waited in vain, with the time of the next try.
// Items that need one are kept apart from others until it is free.
type stalls struct {
	mu    sync.Mutex
	until map[stall]time.Time
}

const (
	stallPause = 40 * time.Millisecond
	// stallKept is how long a stall is remembered after its last use.
	stallKept = 30 * time.Second
)

// none reports whether nothing is known to be locked.
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

// of reports whether a stall is known to be locked, and whether it is time to try it again.
func (s *stalls) of(what stall) (held, try bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, held := s.until[what]
	return held, held && !time.Now().Before(until)
}

// add records that a stall is locked.
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
