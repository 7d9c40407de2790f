package server

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	scanShare   = 20               // scans that succeed take at most 1/scanShare of the time
	scanTimeout = 30 * time.Second // of one scan
	failedRest  = 2 * time.Second  // at most, after a scan that failed

	// patience is how long a request waits for a new scan, when there is an older one.
	patience = time.Second
)

// shared keeps what the last scan of all queues found. One scan serves all requests.
type shared[T any] struct {
	scan func(ctx context.Context) (T, error)
	rest time.Duration // after a scan that found something

	mu    sync.Mutex
	found T
	err   error
	known bool
	until time.Time     // until then no new scan is needed
	busy  chan struct{} // closed when the scan under way ends; nil: there is none
}

// get returns what the last scan found, or a new one if that ends within patience. With the
// error of a scan it returns what that found before.
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

// again scans and keeps what it finds.
func (s *shared[T]) again(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), scanTimeout)
	defer cancel()
	began := time.Now()
	found, err := s.scan(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.err, s.known, s.busy = found, err, true, nil
	rest := scanShare * time.Since(began)
	if err == nil {
		rest = max(rest, s.rest)
	} else {
		rest = min(rest, failedRest)
	}
	s.until = time.Now().Add(rest)
	close(done)
}

// turns bounds how many requests do something at a time; others wait for their turn.
type turns chan struct{}

// answer sends what write appends in a turn. It sends after the turn, so that a slow reader
// delays no other request. If the client goes before the turn, it returns why.
func (t turns) answer(x *exchange, r *http.Request, write func(b []byte) ([]byte, error)) error {
	a := newAnswer()
	defer a.free()
	select {
	case t <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	err := func() (err error) {
		defer func() { <-t }()
		a.b, err = write(a.b)
		return err
	}()
	if err != nil {
		return err
	}
	return x.s.send(x, a, http.StatusOK)
}
