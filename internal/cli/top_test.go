package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

const topHead = `QUEUE  READY  SCHED  LEASED  DEAD  P50  P99  IN/S  OUT/S  NEXT  OLDEST\n`

var topSteps = []step{
	{args: `top`, stdout: `tarry \S+, (server http://127.0.0.1:\d+|store disk:data), engine (http\+mem|disk), TIME\nno problems\n0 queues: 0 scheduled, 0 ready, 0 leased, 0 dead\n` + topHead, stderr: noStoreYet},
	{args: `push order.unpaid x --in 1h`, stdout: `created .*\n`},
	{args: `push mail x`, stdout: `created .*\n`},
	{args: `top --late 0s`, stdout: `tarry .*\n! mail: 1 message is due, the oldest for \S+, (and none is leased|and no worker has asked this server since it started)\n  start a worker, .*\n2 queues: 1 scheduled, 1 ready, 0 leased, 0 dead\n` +
		topHead + `mail  1  0  0  0  -  -  \S+  \S+  -  \S+\norder.unpaid  0  1  0  0  -  -  \S+  \S+  \S+  -\n`},
	{args: `top --sort scheduled --n 2 --interval 100ms`, stdout: `(tarry .*, TIME\nno problems\n.*\n` + topHead + `order.unpaid .*\nmail .*\n\n?){2}`},
	{args: `top --filter MAI --reverse`, stdout: `.*` + topHead + `mail .*\n`},
	{args: `top --sort size`, code: exitUsage, stderr: `tarry: --sort "size" is unknown \(known are name, ready, .*oldest\)\n`},
	{args: `top --interval 99ms`, code: exitUsage, stderr: `tarry: --interval 99ms is less than 100ms .*\n`},
	{args: `top --n -1`, code: exitUsage, stderr: `tarry: --n -1 is negative .*\n`},
	{args: `top --filter ` + strings.Repeat("x", 201), code: exitUsage, stderr: `tarry: --filter has 201 bytes; at most 200 .*\n`},
	{args: `top x`, code: exitUsage, stderr: `tarry: too many arguments .*\n`},
	{args: `pause mail`, stdout: `paused .*\n`},
}

func TestTopWithoutATerminal(t *testing.T) {
	onServer, _ := served(t, "mem:")
	t.Chdir(t.TempDir())
	for _, w := range []world{onServer, {env: []string{"TARRY_STORE=disk:data"}}} {
		for _, s := range topSteps {
			run1(t, w, s)
		}
		lines := strings.Split(strings.TrimSpace(w.must(t, "top", "--json", "--n", "2", "--interval", "100ms", "--late", "0s")), "\n")
		if len(lines) != 2 {
			t.Fatalf("%d lines", len(lines))
		}
		r := object(t, lines[1])
		queues, problems := r["queues"].([]any), r["problems"].([]any)
		if len(queues) != 2 || queues[0].(map[string]any)["ready"] != 1.0 || queues[0].(map[string]any)["paused"] != true || len(problems) != 1 || problems[0].(map[string]any)["problem"] != "paused" || r["more"] != false {
			t.Errorf("%s", lines[1])
		}
	}
}

// Rounds without end are ended by a signal, in good order.
func TestTopRoundsUntilInterrupted(t *testing.T) {
	w, _ := served(t, "mem:")
	r := w.start(t, "top", "--n", "0", "--interval", "100ms", "--json")
	r.stdout.await(t, `(?s)"problems":\[\]}\n.*"problems":\[\]}\n`)
	if code := r.stop(t); code != exitOK || r.stderr.String() != "" {
		t.Errorf("exit code %d: %s", code, r.stderr)
	}
}

// bury pushes a message to a queue and gives it up.
func bury(t *testing.T, c *tarry.Client, queue string) {
	t.Helper()
	if _, err := c.Push(t.Context(), queue, nil); err != nil {
		t.Fatal(err)
	}
	g, err := c.Engine().Lease(t.Context(), []engine.Want{{Queue: queue, Max: 1}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatal(err, g)
	}
	if _, err := c.Engine().Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Bury, Reason: "no such order"}}); err != nil {
		t.Fatal(err)
	}
}

// A look finds what died of late, and no longer when that is long ago.
func TestTopFindsDeaths(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	for _, queue := range []string{"mail", "mail", "news"} {
		bury(t, c, queue)
	}
	p := Program{Now: time.Now}
	o, err := p.topLook(t.Context(), c, server.LateAfter)
	if err != nil || len(o.problems) != 2 || o.problems[1].Queue != "news" || !strings.HasPrefix(about(&o.problems[0]), "mail: 2 messages died within 15m, the last of: no such order") ||
		!strings.HasPrefix(o.problems[0].Hint, "tarry dead ls mail --newest shows why; ") {
		t.Errorf("%+v, %v", o.problems, err)
	}
	s := status{Counts: true, overview: overview{late: server.LateAfter, now: time.Now()}}
	if err := s.ask(t.Context(), c); err != nil || len(s.problems) != 2 || about(&s.problems[1]) != "news: 1 message died within 15m, the last of: no such order" || s.rows[0].bad != 1 {
		t.Errorf("the status: %+v, %v", s.problems, err)
	}
	p.Now = func() time.Time { return time.Now().Add(2 * server.DiedWithin) }
	if o, err := p.topLook(t.Context(), c, server.LateAfter); err != nil || len(o.problems) != 0 {
		t.Errorf("long after: %+v, %v", o.problems, err)
	}
}

func TestTopAsksForSoManyQueues(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	for i := range 5 {
		if _, err := c.Push(t.Context(), fmt.Sprint("q", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for most, more := range map[int]bool{3: true, 4: true, 5: false, 6: false} {
		var o overview
		err := o.look(t.Context(), c, topSpan, topStep, most)
		if err != nil || len(o.rows) != min(most, 5) || o.more != more {
			t.Errorf("of 5 queues %d at most: %d, more: %v, %v", most, len(o.rows), o.more, err)
		}
	}
}

func TestTopRates(t *testing.T) {
	for _, s := range []struct {
		steps []uint64
		want  float64
	}{{nil, 0}, {[]uint64{60}, 0}, {[]uint64{60, 1}, 1}, {[]uint64{600, 60, 0, 0, 0, 0, 60, 999}, 2}} {
		if got := perSecond(s.steps, topStep); got != s.want {
			t.Errorf("%v: %v a second, want %v", s.steps, got, s.want)
		}
	}
	if b, err := json.Marshal(round{}); err != nil || !strings.Contains(string(b), `"more":false`) {
		t.Errorf("%s %v", b, err)
	}
}
