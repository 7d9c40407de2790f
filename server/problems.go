package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// probePatience is the patience of probes, which give up soon, and wait no longer for the first
// scan either.
const probePatience = 250 * time.Millisecond

var callProblems = &call{
	id: "listProblems", group: groupServer, does: "Tell what is wrong, and what to do about it",
	more:  "The worst come first. A token is told of the queues that it may read.",
	query: wire.ProblemsParameters, answers: ok("What is wrong.", wire.ProblemsAnswer.Ref()),
}

// problems tells what is wrong with the server, its store and its queues.
func (s *Server) problems(x *exchange, r *http.Request) error {
	late, err := wire.ParseProblemsQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	var found []Problem
	if late == LateAfter {
		found, err = s.problemScan.get(r.Context(), patience)
	} else {
		found, err = s.scanNow(r.Context(), late)
	}
	if gone := r.Context().Err(); gone != nil {
		return gone
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, s.told(x, found, err)) })
}

// told returns what a request may see of the problems of queues, after those of the server. If
// the scan failed it says so, so that no problems is no news that all is well.
func (s *Server) told(x *exchange, found []Problem, failed error) wire.Problems {
	all := wire.Problems{Problems: append(s.ownProblems(), ofStore(s.c)...), More: failed != nil}
	all.Problems = append(all.Problems, s.intakeProblems(x)...)
	if failed != nil { // the error may name queues that the token may not read
		all.Problems = append(all.Problems, Problem{Problem: "server", Message: "not all queues could be read: there may be more problems",
			Hint: "the server's log says why; see to what is behind the engine " + s.c.Capabilities().Name})
	}
	for _, p := range found {
		if !x.maySeeTrend(p.Queue) {
			continue
		}
		if len(all.Problems) >= wire.MaxProblems {
			all.More = true
			break
		}
		all.Problems = append(all.Problems, p)
	}
	return all
}

// scanNow scans while no other request does. The wait is part of the time that a scan has.
func (s *Server) scanNow(ctx context.Context, late time.Duration) ([]Problem, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	select {
	case s.scans <- struct{}{}:
		defer func() { <-s.scans }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.scan(ctx, late)
}

func (s *Server) scan(ctx context.Context, late time.Duration) ([]Problem, error) {
	now := time.Now()
	l := Scan{Late: late, Now: now, Trends: s.cfg.Trends, began: s.workers.began, runs: s.lastRuns}
	l.asked, l.allAsked = s.workers.asked(now)
	for _, queues := range s.c.Running() {
		for _, q := range queues {
			l.asked[q] = true
		}
	}
	found, err := l.ofQueues(ctx, s.c, s.c.AllQueues(ctx))
	s.scanFailed(err)
	return found, err
}

// scanFailed logs the error of a scan, if any.
func (s *Server) scanFailed(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	if left, ok := s.failureLines.away.Next(); ok {
		s.cfg.Logger.Error("a scan of all queues failed", "error", err, "not_told", left)
	}
}
