package sqlengine

import (
	"maps"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// lockKey is what an item needs and others may have locked: a message, a key, or a whole queue.
type lockKey struct {
	id         engine.ID
	queue, key string
}

// knownLocks holds each lockKey for which calls waited in vain, with the time of the next try.
// Items that need one are kept apart from others until it is free.
type knownLocks struct {
	mu    sync.Mutex
	until map[lockKey]time.Time
}

const (
	lockPause = 40 * time.Millisecond
	// lockKept is how long a lockKey is remembered after its last use.
	lockKept = 30 * time.Second
)

// none reports whether nothing is known to be locked.
func (s *knownLocks) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.until) == 0 {
		return true
	}
	now := time.Now()
	maps.DeleteFunc(s.until, func(_ lockKey, until time.Time) bool { return now.Sub(until) > lockKept })
	return len(s.until) == 0
}

// of reports whether a lockKey is known to be locked, and whether it is time to try it again.
func (s *knownLocks) of(what lockKey) (held, try bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, held := s.until[what]
	return held, held && !time.Now().Before(until)
}

// add records that a lockKey is locked.
func (s *knownLocks) add(what lockKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[lockKey]time.Time)
	}
	s.until[what] = time.Now().Add(lockPause)
}

func (s *knownLocks) drop(what lockKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, what)
}
