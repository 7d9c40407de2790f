package server

import (
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/intake"
	"github.com/tarryhq/tarry/server/access"
)

// A token is told of the intakes whose queue it may read, and of their problems.
func TestIntakesOfTokens(t *testing.T) {
	g := newGuarded(t)
	g.cfg.Intakes = func() []intake.Status {
		return []intake.Status{
			{Name: "a", Queue: "mine.a", State: intake.Running, Since: time.UnixMilli(1_600_000_000_000), Counts: intake.Counts{Taken: 9, Pushed: 3, Doubles: 2, Cancelled: 1, Missed: 1, Refused: 1, Redelivered: 4, Doubtful: 5}, Unacked: 1, LastRefused: "no key"},
			{Name: "b", Queue: "theirs", State: intake.Failing, Code: "no_queue", Error: "there is no queue", Hint: "make it"},
			{Name: "c", Queue: "mine.c", State: intake.Connecting},
		}
	}
	all := g.create("all", access.Admin, []string{"*"}, time.Time{})
	mine := g.create("mine", access.Read, []string{"mine.*"}, time.Time{})
	const (
		a       = `{"name":"a","queue":"mine.a","state":"running","since":"2020-09-13T12:26:40.000Z","taken":9,"pushed":3,"doubles":2,"cancelled":1,"missed":1,"refused":1,"redelivered":4,"doubtful":5,"unacked":1,"last_refused":"no key"}`
		b       = `{"name":"b","queue":"theirs","state":"failing","since":null,"code":"no_queue","error":"there is no queue","hint":"make it","taken":0,"pushed":0,"doubles":0,"cancelled":0,"missed":0,"refused":0,"redelivered":0,"doubtful":0,"unacked":0}`
		problem = `{"problem":"intake","queue":"theirs","message":"the intake b fails: there is no queue","hint":"make it"}`
	)
	for secret, own := range map[string]bool{all: false, mine: true} {
		told := g.ask(secret, "GET", "/v1/intakes", "").Body.String()
		if !strings.HasPrefix(told, `{"intakes":[`+a+`,`) || strings.Contains(told, b) == own || !strings.Contains(told, `"state":"connecting"`) {
			t.Errorf("told is %s", told)
		}
		for _, path := range []string{"/v1/problems", "/readyz"} {
			if told := g.ask(secret, "GET", path, "").Body.String(); strings.Contains(told, problem) == own || strings.Count(told, `"intake"`) > 1 {
				t.Errorf("%s: %s", path, told)
			}
		}
	}
	g.cfg.Intakes = nil
	if told := g.ask(all, "GET", "/v1/intakes", "").Body.String(); told != `{"intakes":[]}` {
		t.Errorf("told is %s", told)
	}
}
