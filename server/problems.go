package server

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// probePatience is the patience of probes, which give up soon, and wait no longer for the first
// scan either.
const probePatience = 250 * time.Millisecond

var callProblems = &call{
	id: "listProblems", group: groupServer, does: "Tell what is wrong, and what to do about it",
	more:  "The worst come first. A token is told of the queues that it may read.",
	query: wire.ProblemsQuery.Shape, answers: ok("What is wrong.", wire.ProblemsAnswer.Ref()),
}

// problems tells what is wrong with the server, its store and its queues.
func (s *Server) problems(x *exchange, r *http.Request) error {
	late, err := wire.ProblemsQuery.ParseQuery(r.URL.RawQuery)
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

var callHealthz = &call{
	id: "getHealth", group: groupServer, does: "Tell whether the server lives",
	answers: ok("It lives.", wire.Health.Ref()),
}

var callReadyz = &call{
	id: "getReadiness", group: groupServer, does: "Tell whether requests are welcome, or why not",
	answers: ok("They are.", wire.Health.Ref()), fails: []error{engine.ErrNoSpace},
}

// healthz answers as long as the process does.
func (s *Server) healthz(x *exchange, _ *http.Request) error {
	return s.answer(x, appendHealthy)
}

func appendHealthy(b []byte) []byte { return append(b, `{"status":"ok"}`...) }

// readyTimeout is how long the engine may take to answer readyz.
const readyTimeout = 2 * time.Second

// readyz answers 200 while requests are welcome: the server is not shutting down, and the
// engine answers and accepts messages. Otherwise it says why and what to do. It answers 507
// when the disk is full, since then only pushes fail, and 503 when nothing would succeed. Only
// clients with a valid token see further problems.
func (s *Server) readyz(x *exchange, r *http.Request) error {
	if stopping(r.Context()).Err() != nil {
		return errStopping()
	}
	if s.cfg.Guard != nil && s.cfg.Guard.Closed() {
		return refusal(http.StatusServiceUnavailable, "unavailable", "no token is valid: the file of tokens is gone", "put it back; the server's log names it")
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := s.c.Ready(ctx)
	switch {
	case err == nil:
		var all []Problem
		if s.knows(x, r) {
			all = s.readyProblems(ctx, x)
		}
		return s.answer(x, func(b []byte) []byte { return wire.AppendReady(b, all) })
	case errors.Is(err, engine.ErrNoSpace):
		return refusal(http.StatusInsufficientStorage, engine.Code(err), "pushes fail: "+engine.ErrNoSpace.Error(), wire.Shown(err).Hint)
	case ctx.Err() != nil:
		return refusal(http.StatusServiceUnavailable, "unavailable", "the engine has not answered for "+readyTimeout.String(),
			"see to what is behind the engine "+s.c.Capabilities().Name+": its disk, its server, the network in between")
	}
	if !s.knows(x, r) { // the error may name hosts, users and databases
		s.cfg.Logger.Error("the engine does not work", "error", err)
		return refusal(http.StatusServiceUnavailable, "unavailable", "the engine does not work", "the server's log says why; so does this page with a valid token")
	}
	f := wire.Shown(err)
	return refusal(http.StatusServiceUnavailable, "unavailable", "the engine does not work: "+f.Message,
		cmp.Or(f.Hint, "see to what is behind the engine "+s.c.Capabilities().Name+", and to the server's log"))
}

// knows reports whether a request needs no token or has a valid one. It keeps that in x.
func (s *Server) knows(x *exchange, r *http.Request) bool {
	if s.cfg.Guard == nil {
		return true
	}
	token, unknown := s.cfg.Guard.Who(r)
	if unknown != nil {
		return false
	}
	x.token = token
	return true
}

// readyProblems returns the problems for a probe. It does not wait for a slow scan of the
// queues.
func (s *Server) readyProblems(ctx context.Context, x *exchange) []Problem {
	ctx, cancel := context.WithTimeout(ctx, 2*probePatience)
	defer cancel()
	found, err := s.problemScan.get(ctx, probePatience)
	if ctx.Err() != nil {
		err = nil // of the first scan, which has not failed yet
	}
	return s.told(x, found, err).Problems
}

// ownProblems returns the server's own problems. Requests are answered all the same.
func (s *Server) ownProblems() []Problem {
	all := []Problem{}
	note := func(message, hint string) {
		all = append(all, Problem{Problem: "server", Message: message, Hint: hint})
	}
	if s.cfg.Guard != nil {
		if err := s.cfg.Guard.Trouble(); err != nil {
			note("the tokens cannot be read again, and those read before are good: "+err.Error(),
				"mend the file, or put it back: what is revoked meanwhile stays good")
		}
	}
	if s.cfg.Audit != nil {
		if err := s.cfg.Audit.Trouble(); err != nil {
			note("the audit log cannot be written: "+err.Error(),
				"make room where it lies, or let the server write there; changes go on meanwhile, and their lines are in the server's log")
		}
	}
	if s.cfg.Certificate != nil {
		if message, hint := s.cfg.Certificate.trouble(time.Now()); message != "" {
			note(message, hint)
		}
	}
	return all
}

func errStopping() *wire.Error {
	return refusal(http.StatusServiceUnavailable, "unavailable", "the server is shutting down", "ask another, or this one when it has been started again")
}
