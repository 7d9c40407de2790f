package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
)

var statusSteps = []step{
	{args: `status`, stdout: `tarry \S+, (server http://127.0.0.1:\d+|store disk:data), engine (http\+mem|disk): ready\nno problems\n0 queues: 0 scheduled, 0 ready, 0 leased, 0 dead\n`, stderr: noStoreYet},
	{args: `push mail later --in 1h`, stdout: `created .*\n`},
	{args: `push mail now`, stdout: `created .*\n`},
	{args: `status`, stdout: `tarry .*: ready\nno problems\n1 queue: 1 scheduled, 1 ready, 0 leased, 0 dead\noldest ready: AWAY, of mail\nnext due: AWAY, of mail\n\nQUEUE  SCHEDULED .*\nmail  1  1  0  0  AWAY  AWAY  -\n`},
	{args: `status --late 0s`, code: exitFailed,
		stdout: `tarry .*\n! mail: 1 message is due, the oldest for \d+s, (and none is leased|and no worker has asked this server since it started)\n  start a worker, .*\n1 queue: .*`,
		stderr: `tarry: there is 1 problem \(each is shown with what to do\)\n`},
	{args: `pause mail`, stdout: `paused .*\n`},
	{args: `status --late 0s`, code: exitFailed, stdout: `.*\n! mail: 1 message is due, .*, and the queue is paused\n  tarry resume mail ends the pause\n.*until resumed\n`, stderr: `tarry: there is 1 problem .*\n`},
	{args: `resume mail`, stdout: `resumed .*\n`},
	{args: `status --ready --store mem:`, code: exitUsage, stderr: `tarry: --ready asks a server, and a store is given .*\n`},
	{args: `status x`, code: exitUsage, stderr: `tarry: too many arguments .*\n`},
}

func TestStatus(t *testing.T) {
	w, _ := served(t, "mem:")
	for _, s := range statusSteps {
		run1(t, w, s)
	}
	t.Chdir(t.TempDir())
	w = world{env: []string{"TARRY_STORE=disk:data"}}
	for _, s := range statusSteps {
		run1(t, w, s)
	}
}

// A server that is not ready is told of beside all that it still tells.
func TestStatusOfAFullDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	w, _ := served(t, "disk:data?min_free=1000000GiB")
	run1(t, w, step{args: "status", code: exitFailed,
		stdout: `tarry .*: not ready\n! .*no space left on disk.*\n  [0-9]+ MiB are to be left free \(min_free\): free some space.*\n0 queues: .*`, stderr: `tarry: there is 1 problem .*\n`})
	run1(t, w, step{args: "status --ready", code: exitFailed, stderr: `tarry: status: pushes fail: no space left on disk: limit reached \([0-9]+ MiB are to be left free \(min_free\): free some space.*\)\n`})
	o := w.tarry(t, "status", "--json")
	s := object(t, o.stdout)
	if o.code != exitFailed || s["ready"] != false || len(s["problems"].([]any)) != 1 || s["problems"].([]any)[0].(map[string]any)["problem"] != "not_ready" {
		t.Errorf("%d %s", o.code, o.stdout)
	}
}

func TestStatusReady(t *testing.T) {
	w, _ := served(t, "mem:")
	run1(t, w, step{args: "status --ready", stdout: `ready\n`})
	run1(t, w, step{args: "status --ready --json", stdout: `{"ready":true}\n`})
}

func TestStatusHidesSecrets(t *testing.T) {
	for _, where := range []string{"http://s3cret@host:1/x?y=s3cret", "postgres://u:s3cret@host/db?password=s3cret"} {
		if got := bare(where); strings.Contains(got, "s3cret") || !strings.Contains(got, "host") {
			t.Errorf("%s is shown as %s", where, got)
		}
	}
}

// With many queues the worst stand on the screen.
func TestStatusOfManyQueues(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	s := status{overview: overview{late: time.Minute, now: time.Now()}, Counts: true}
	for i := range 100 {
		q := engine.QueueInfo{Queue: fmt.Sprintf("q%02d", i), Scheduled: 1}
		if i == 77 {
			q.Ready, q.Leased, q.OldestReady = 5, 2, s.now.Add(-time.Hour)
		}
		s.add(q, nil, lateSpan)
	}
	if err := s.ask(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := world{}.program(&out, &out)
	o := p.printer()
	s.print(o)
	if err := o.flush(); err != nil {
		t.Fatal(err)
	}
	text := plain(out.String())
	for _, want := range []string{"! q77: 5 messages are due, the oldest for 1h, with 2 leases held\n", "PAUSED\nq77  1  5  2  0", "and 80 queues; tarry queues shows all\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n"); n > 40 {
		t.Errorf("%d lines are no screen", n)
	}
}

// How late messages were the server knows, also when none waits any more.
func TestStatusTellsHowLateMessagesWere(t *testing.T) {
	w, _ := served(t, "mem:")
	url, _ := w.program(nil, nil).env("TARRY_SERVER")
	c, err := openStore(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.PushDraft(t.Context(), tarry.NewDraft("mail", nil, tarry.At(time.Now().Add(-time.Hour)))); err != nil {
		t.Fatal(err)
	}
	w.must(t, "push", "other", "x", "--in", "1h")
	g, err := c.Engine().Lease(t.Context(), []engine.Want{{Queue: "mail", Max: 1}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatal(err, g)
	}
	run1(t, w, step{args: "status", code: exitFailed,
		stdout: `tarry .*: ready\n! mail: of 1 message handed out within 15m one in a hundred came later than (59|1h)\S*, the worst 1h\S* late\n  see when .*` +
			`(?s:.*)QUEUE .* LATE P50  P99  WORST\nmail  0  0  1  0  -  -  -  \S+  \S+  1h\S*\nother  1  0  0  0  AWAY  -  -  -  -  -\n`,
		stderr: `tarry: there is 1 problem .*\n`})
	run1(t, w, step{args: "status --late 2h", stdout: `tarry .*: ready\nno problems\n(?s:.*)`})
	o := w.tarry(t, "status", "--json")
	queues := object(t, o.stdout)["queues"].([]any)
	if _, err := c.Engine().Settle(t.Context(), []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Ack}}); err != nil {
		t.Fatal(err)
	}
	run1(t, w, step{args: "status --late 2h", stdout: `(?s:.*)mail  0  0  0  0  -  -  -  \S+  \S+  1h\S*\n(?s:.*)`}) // it holds nothing any more
	if late, _ := queues[0].(map[string]any)["lateness"].(map[string]any); late["count"] != 1.0 || late["max_ms"].(float64) < 3_600_000 {
		t.Errorf("%s", o.stdout)
	}
}
