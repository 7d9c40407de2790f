package server

import (
	"net/http"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/internal/wire"
)

var callIntakes = &call{
	id: "listIntakes", group: groupServer, does: "List the intakes",
	more:    "They take messages from other systems. Counts begin with the server. A token is told of the intakes whose queue it may read.",
	answers: ok("The intakes.", wire.IntakesAnswer.Ref()),
}

// listIntakes lists the intakes that the token may see.
func (s *Server) listIntakes(x *exchange, _ *http.Request) error {
	told := wire.Intakes{Intakes: []wire.Intake{}}
	for _, i := range s.intakes(x) {
		told.Intakes = append(told.Intakes, wire.Intake{
			Name: i.Name, Queue: i.Queue, State: string(i.State), Since: wire.Time{Time: i.Since},
			Code: i.Code, Error: i.Error, Hint: i.Hint,
			Taken: i.Taken, Pushed: i.Pushed, Doubles: i.Doubles, Cancelled: i.Cancelled, Missed: i.Missed,
			Refused: i.Refused, Redelivered: i.Redelivered, Doubtful: i.Doubtful,
			Unacked: i.Unacked, LastRefused: i.LastRefused,
		})
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendJSON(b, &told) })
}

// intakes returns the intakes that the token may see.
func (s *Server) intakes(x *exchange) (seen []intake.Status) {
	if s.cfg.Intakes == nil {
		return nil
	}
	for _, i := range s.cfg.Intakes() {
		if x.maySeeTrend(i.Queue) {
			seen = append(seen, i)
		}
	}
	return seen
}

// intakeProblems returns a problem for each intake that fails.
func (s *Server) intakeProblems(x *exchange) (all []Problem) {
	for _, i := range s.intakes(x) {
		if i.State == intake.Failing {
			all = append(all, Problem{Problem: "intake", Queue: i.Queue, Message: "the intake " + i.Name + " fails: " + i.Error, Hint: i.Hint})
		}
	}
	return all
}
