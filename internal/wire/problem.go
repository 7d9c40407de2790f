package wire

import (
	"net/url"
	"reflect"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/schema"
)

const (
	// DefaultLate is how long a message may be ready before it is late.
	DefaultLate = 30 * time.Second
	// MaxProblems is how many problems an answer has at most.
	MaxProblems = 1000
)

// Problem is something wrong with a server, its store or a queue, and what to do about it.
type Problem struct {
	Problem string `json:"problem" doc:"server, store, intake, no_worker, late, deaths, schedule, paused or was_late; more may come"`
	Queue   string `json:"queue,omitempty" doc:"missing: it is the server's or its store's"`
	Message string `json:"message" doc:"for people; may change"`
	Hint    string `json:"hint" doc:"what to do about it"`
}

// Problems is what is wrong, the worst first.
type Problems struct {
	Problems []Problem `json:"problems"`
	More     bool      `json:"more"`
}

// ProblemsAnswer is the shape of Problems.
var ProblemsAnswer = newShape("Problems", "What is wrong, the worst first.", false, []field{
	{"problems", schema.Array(problemFields.Ref(), MaxProblems), "", true},
	{"more", isFlag, "there are more, or not all queues could be read", true},
})

var problemFields = newShape("Problem", "What is wrong, and what to do about it.", false, tagged(reflect.TypeFor[Problem]()))

// ProblemsParameters are the parameters of GET /v1/problems.
var ProblemsParameters = parameters(
	parameter("late", isDuration.With("default", duration.Format(DefaultLate)), "messages that have been ready for so long are late"))

// ProblemsQuery returns the query for problems.
func ProblemsQuery(late time.Duration) string {
	return url.Values{"late": {duration.Format(late)}}.Encode()
}

// ParseProblemsQuery reads the query for problems.
func ParseProblemsQuery(raw string) (late time.Duration, err error) {
	q := parseQuery(raw, ProblemsParameters)
	if late = q.duration("late", DefaultLate); late < 0 {
		q.fail(Wrong("late: %s is negative", duration.Format(late)))
	}
	return late, q.err
}
