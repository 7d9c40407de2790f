package server

import (
	"context"
	"sync"
	"time"
)

const (
	lookShare   = 20               // looks that succeed take at most 1/lookShare of the time
	lookTimeout = 30 * time.Second // of one look
	failedRest  = 2 * time.Second  // at most, after a look that failed

	// patience is how long those who ask wait for a new look, when there is an older one.
	patience = time.Second
)

// shared keeps what the last look at all queues found. One look serves all who ask.
type shared[T any] struct {
	look func(ctx context.Context) (T, error)
	rest time.Duration // after a look that found something

	mu    sync.Mutex
	found T
	err   error
	known bool
	until time.Time     // until then no new look is needed
	busy  chan struct{} // closed when the look under way ends; nil: there is none
}

// get returns what the last look found, or a new one if that ends within patience. With the
// error of a look it returns what that found before.
func (s *shared[T]) get(ctx context.Context, patience time.Duration) (T, error) {
	s.mu.Lock()
	if !time.Now().Before(s.until) && s.busy == nil {
		s.busy = make(chan struct{})
		go s.again(s.busy)
	}
	busy, known := s.busy, s.known
	s.mu.Unlock()
	if busy != nil {
		var enough <-chan time.Time
		if known {
			enough = time.After(patience)
		}
		select {
		case <-busy:
		case <-enough:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.err
}

// again looks and keeps what it finds.
func (s *shared[T]) again(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	began := time.Now()
	found, err := s.look(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.err, s.known, s.busy = found, err, true, nil
	rest := lookShare * time.Since(began)
	if err == nil {
		rest = max(rest, s.rest)
	} else {
		rest = min(rest, failedRest)
	}
	s.until = time.Now().Add(rest)
	close(done)
}
