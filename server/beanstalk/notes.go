package beanstalk

import (
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// note is what the store does not keep of a job.
type note struct {
	releases, timeouts, buries, kicks uint32

	reserves uint32        // before the last kick, which makes the store count anew
	delay    time.Duration // the last one
	delayed  bool          // delay is set
}

func (n *note) setDelay(d time.Duration) { n.delay, n.delayed = d, true }

// keepDelay sets the delay unless it is set: the job's due time is about to change.
func (n *note) keepDelay(m *engine.Info) {
	if !n.delayed {
		n.setDelay(m.Due.Sub(m.Created))
	}
}

// mostNotes bounds the notes. Beyond it any is forgotten.
const mostNotes = 100_000

// notes holds the notes of the jobs that have any.
type notes struct {
	mu  sync.Mutex
	all map[engine.ID]note
}

// change changes the note of a job.
func (s *notes) change(id engine.ID, f func(*note)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[engine.ID]note)
	}
	n, ok := s.all[id]
	if !ok && len(s.all) >= mostNotes {
		for any := range s.all {
			delete(s.all, any)
			break
		}
	}
	f(&n)
	s.all[id] = n
}

// of returns the note of a job.
func (s *notes) of(id engine.ID) note {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

// drop forgets the note of a job that is deleted.
func (s *notes) drop(id engine.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}
