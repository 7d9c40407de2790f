package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

const (
	lookShare   = 20               // looks take at most 1/lookShare of the time
	lookTimeout = 30 * time.Second // of one look

	// patience is how long those who ask wait for a new look, when there is an older one.
	// Probes give up soon, and wait no longer for the first one either.
	patience      = time.Second
	probePatience = 250 * time.Millisecond
)

var callProblems = &call{
	id: "listProblems", group: groupServer, does: "Tell what is wrong, and what to do about it",
	more:  "The worst come first. A token is told of the queues that it may read.",
	query: wire.ProblemsParameters, answers: ok("What is wrong.", wire.ProblemsAnswer.Ref()),
}

// lookout keeps what the last look at all queues found. One look serves all who ask.
type lookout struct {
	mu    sync.Mutex
	found []Problem
	err   error
	known bool
	until time.Time     // until then no new look is needed
	busy  chan struct{} // closed when the look under way ends; nil: there is none
}

// problems tells what is wrong with the server, its store and its queues.
func (s *Server) problems(x *exchange, r *http.Request) error {
	late, err := wire.ParseProblemsQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if late == LateAfter {
		found, err := s.found(r.Context(), patience)
		if err != nil {
			return err
		}
		return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, s.told(x, found)) })
	}
	return s.pages.answer(x, r, func(b []byte) ([]byte, error) {
		found, err := s.look(r.Context(), late)
		if err != nil {
			return nil, err
		}
		return wire.AppendJSON(b, s.told(x, found)), nil
	})
}

// told returns what a request may see of the problems of queues, after those of the server.
func (s *Server) told(x *exchange, found []Problem) wire.Problems {
	all := wire.Problems{Problems: append(s.ownProblems(), ofStore(s.c)...)}
	for _, p := range found {
		if !x.maySeeTrend(p.Queue) {
			continue
		}
		if all.More = len(all.Problems) >= wire.MaxProblems; all.More {
			break
		}
		all.Problems = append(all.Problems, p)
	}
	return all
}

func (s *Server) look(ctx context.Context, late time.Duration) ([]Problem, error) {
	l := Look{Late: late, Now: time.Now(), Trends: s.cfg.Trends}
	return l.ofQueues(ctx, s.c, s.c.AllQueues(ctx))
}

// found returns the problems of all queues as of the last look, or of a new one if that ends
// within patience.
func (s *Server) found(ctx context.Context, patience time.Duration) ([]Problem, error) {
	o := &s.lookout
	o.mu.Lock()
	if !time.Now().Before(o.until) && o.busy == nil {
		o.busy = make(chan struct{})
		go s.lookAgain(o.busy)
	}
	busy, known := o.busy, o.known
	o.mu.Unlock()
	if busy != nil {
		var enough <-chan time.Time
		if known {
			enough = time.After(patience)
		}
		select {
		case <-busy:
		case <-enough:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found, o.err
}

// lookAgain looks at all queues and keeps what it finds.
func (s *Server) lookAgain(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	began := time.Now()
	found, err := s.look(ctx, LateAfter)
	o := &s.lookout
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found, o.err, o.known, o.busy = found, err, true, nil
	o.until = time.Now().Add(lookShare * time.Since(began))
	close(done)
}
