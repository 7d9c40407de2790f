package sqlengine

import (
	"slices"
	"sync"

	"github.com/tarryhq/tarry/engine"
)

// limits are the settings of queues that have some, as last seen: by them a call guesses
// which queues it must lock. The transaction finds out whether that was right.
type limits struct {
	mu     sync.RWMutex
	queues map[int64]engine.Settings
}

// note takes note of what a transaction has seen.
func (l *limits) note(heads []Heads) {
	for i := range heads {
		h := &heads[i]
		l.mu.RLock()
		_, known := l.queues[h.Num]
		l.mu.RUnlock()
		unset := h.Settings.Unset()
		if !known && unset {
			continue
		}
		l.mu.Lock()
		switch {
		case unset:
			delete(l.queues, h.Num)
		case l.queues == nil:
			l.queues = map[int64]engine.Settings{h.Num: h.Settings}
		default:
			l.queues[h.Num] = h.Settings
		}
		l.mu.Unlock()
	}
}

// of returns those of queues for whose settings only holds.
func (l *limits) of(queues []int64, only alone) (lock []int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.queues) == 0 {
		return nil
	}
	for _, q := range queues {
		if s, ok := l.queues[q]; ok && only(&s) {
			lock = append(lock, q)
		}
	}
	slices.Sort(lock)
	return lock
}

// within reports whether all that is to be locked is.
func within(wanted, locked []int64) bool {
	for _, q := range wanted {
		if _, ok := slices.BinarySearch(locked, q); !ok {
			return false
		}
	}
	return true
}
