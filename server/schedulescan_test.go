package server_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// lookedUp is an engine that counts look-ups by queue.
type lookedUp struct {
	*memengine.Engine
	looks map[string]int
}

func (l *lookedUp) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	l.looks[ref.Queue]++
	return l.Engine.Get(ctx, ref)
}

// A schedule is a problem while it is overdue, while it cannot fire, and while its last run
// is dead. One that pushes to a paused queue is none.
func TestProblemsOfSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newScheduled(t)
		set := func(name, queue string) {
			t.Helper()
			a.call(200, "PUT", "/v1/schedules/"+name, fmt.Sprintf(`{"spec":"@every 1h","message":{"queue":%q}}`, queue))
		}
		problems := func(when string, want ...string) {
			t.Helper()
			time.Sleep(11 * time.Second) // of what a scan found before
			var got []string
			for _, p := range a.call(200, "GET", "/v1/problems", "")["problems"].([]any) {
				if field(t, p, "problem") == "schedule" {
					got = append(got, fmt.Sprint(field(t, p, "queue"), ": ", field(t, p, "message")))
				}
			}
			same := len(got) == len(want)
			for i := range got {
				same = same && strings.HasPrefix(got[i], want[i])
			}
			if n := a.s.ScheduleProblems(); !same || n != len(want) {
				t.Fatalf("%s: %q, and %d are counted, want %q", when, got, n, want)
			}
		}
		a.call(200, "PUT", "/v1/queues/full/settings", `{"settings":{"max_pending":1}}`)
		a.call(201, "POST", "/v1/queues/full/messages", `{"delay":"48h","key":"k"}`)
		a.call(200, "POST", "/v1/queues/paused/pause", "")
		set("a", "q")
		set("b", "full")
		set("c", "paused")
		problems("at first")
		time.Sleep(time.Hour)
		problems("before they are overdue")
		time.Sleep(20 * time.Second)
		problems("overdue", "full: the schedule b should have fired 53s ago", "paused: the schedule c should", "q: the schedule a should")

		stop := a.run()
		defer stop()
		problems("with a worker", "full: the schedule b cannot fire: ")
		if told := a.call(200, "GET", "/v1/schedules/b", ""); !strings.Contains(fmt.Sprint(told["error"]), "limit") || told["state"] != "active" {
			t.Errorf("b is %v", told)
		}
		if n := a.call(200, "GET", "/v1/queues/paused", "")["ready"]; n != 1.0 {
			t.Errorf("the paused queue has %v messages, want 1", n)
		}
		a.call(204, "DELETE", "/v1/queues/full/keys/k", "")
		time.Sleep(2 * time.Minute)
		problems("with room")
		if told := a.call(200, "GET", "/v1/schedules/b", ""); told["error"] != nil || field(t, told, "runs", 0, "key") != "b@2000-01-01T01:00:00Z" {
			t.Errorf("b is %v", told)
		}

		bury := func() {
			t.Helper()
			l, err := a.c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1})
			if err != nil || len(l.Messages) != 1 {
				t.Fatal(l, err)
			}
			out, err := a.c.Settle(t.Context(), []engine.Settlement{{Token: l.Messages[0].Token, Do: engine.Bury, Reason: "no such\nreport"}})
			if err := cmpErr(err, out); err != nil {
				t.Fatal(err)
			}
		}
		bury()
		problems("with a dead run", "q: the last run of the schedule a is dead: no such report")
		if run := field(t, a.call(200, "GET", "/v1/schedules/a", ""), "runs", 0); field(t, run, "state") != "dead" || field(t, run, "error") != "no such\nreport" || field(t, run, "ended") == nil {
			t.Errorf("the run is %v", run)
		}
		a.call(200, "POST", "/v1/queues/q/redrive", "")
		problems("redriven")
		bury()
		problems("dead again", "q: the last run of the schedule a is dead")
		a.call(204, "DELETE", "/v1/schedules/a", "")
		problems("removed")
	})
}

// Of many schedules a scan looks up the last runs of those alone that push to a queue with dead
// messages.
func TestScanOfManySchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const schedules = 1000
		e := &lookedUp{Engine: memengine.New(nil), looks: make(map[string]int)}
		c := tarry.New(e, nil)
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, &server.Config{})}
		for i := range 2 * schedules {
			queue := []string{"well", "sick"}[i%2]
			if _, err := c.SetSchedule(t.Context(), tarry.Schedule{Name: fmt.Sprint("s", i), Spec: "@every 240h", Draft: tarry.NewDraft(queue, nil)}, ""); err != nil {
				t.Fatal(err)
			}
		}
		stop := a.run()
		time.Sleep(240 * time.Hour)
		stop()
		scan := func(want map[string]int) {
			t.Helper()
			clear(e.looks)
			time.Sleep(10 * time.Second)
			a.problems("/v1/problems?late=480h")
			if delete(e.looks, tarry.ScheduleQueue); !maps.Equal(e.looks, want) {
				t.Errorf("looked up %v, want %v", e.looks, want)
			}
		}
		scan(nil)
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"sick"}, Max: 1})
		if err != nil || len(l.Messages) != 1 {
			t.Fatal(l, err)
		}
		out, err := c.Settle(t.Context(), []engine.Settlement{{Token: l.Messages[0].Token, Do: engine.Bury}})
		if err := cmpErr(err, out); err != nil {
			t.Fatal(err)
		}
		scan(map[string]int{"sick": schedules})
	})
}
