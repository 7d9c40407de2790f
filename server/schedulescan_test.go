package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// lookedUp is an engine that counts look-ups of one queue.
type lookedUp struct {
	*memengine.Engine
	looks atomic.Int64
	keys  sync.Map // that were looked up
}

func (l *lookedUp) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if ref.Queue == "q" {
		l.looks.Add(1)
		l.keys.Store(ref.Key, true)
	}
	return l.Engine.Get(ctx, ref)
}

// distinct counts the keys that were looked up.
func (l *lookedUp) distinct() (n int) {
	l.keys.Range(func(any, any) bool { n++; return true })
	return n
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

// Of ten thousand schedules a scan looks few runs up: each in its turn, none again that is over.
func TestScanOfManySchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const schedules, run, most = 10_000, 2000, 500
		e := &lookedUp{Engine: memengine.New(nil)}
		c := tarry.New(e, nil)
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, &server.Config{})}
		for i := range schedules {
			spec := "@every 240h"
			if i >= run {
				spec = "@every 8760h"
			}
			if _, err := c.SetSchedule(t.Context(), tarry.Schedule{Name: fmt.Sprint("s", i), Spec: spec, Draft: tarry.NewDraft("q", nil)}, ""); err != nil {
				t.Fatal(err)
			}
		}
		stop := a.run()
		time.Sleep(240 * time.Hour)
		stop()
		scan := func() int64 {
			t.Helper()
			before := e.looks.Load()
			time.Sleep(10 * time.Second)
			a.problems("/v1/problems?late=480h")
			return e.looks.Load() - before
		}
		for i := range run / most {
			if n := scan(); n != most {
				t.Fatalf("scan %d looked up %d", i, n)
			}
		}
		if n := e.distinct(); n != run {
			t.Errorf("of %d runs %d were looked up", run, n)
		}
		done := 0
		for done < run { // all are acked
			l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1000})
			if err != nil || len(l.Messages) == 0 {
				t.Fatal(len(l.Messages), err)
			}
			for i := range l.Messages {
				out, err := c.Settle(t.Context(), []engine.Settlement{{Token: l.Messages[i].Token, Do: engine.Ack}})
				if err := cmpErr(err, out); err != nil {
					t.Fatal(err)
				}
			}
			done += len(l.Messages)
		}
		for i := range run / most {
			if n := scan(); n != most {
				t.Fatalf("scan %d of those over looked up %d", i, n)
			}
		}
		if n := scan(); n != 0 {
			t.Errorf("when all are over, %d are looked up", n)
		}
	})
}
