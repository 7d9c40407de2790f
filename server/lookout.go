package server

import (
	"context"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/internal/wire"
)

// probePatience is the patience of probes, which give up soon, and wait no longer for the first
// look either.
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
	if late == LateAfter {
		found, err := s.lookout.get(r.Context(), patience)
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
