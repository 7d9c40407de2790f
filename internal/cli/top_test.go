package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

const topHead = `QUEUE  READY  SCHEDULED  LEASED  DEAD  LATE P50  LATE P99  PUSHED/S  HANDLED/S  NEXT DUE  OLDEST READY  PAUSED\n`

var topSteps = []step{
	{args: `top`, stdout: `tarry \S+, (server http://127.0.0.1:\d+|store disk:data), engine (http\+mem|disk), TIME\nno problems\n0 queues: 0 scheduled, 0 ready, 0 leased, 0 dead\n` + topHead, stderr: noStoreYet},
	{args: `push order.unpaid x --in 1h`, stdout: `created .*\n`},
	{args: `push mail x`, stdout: `created .*\n`},
	{args: `top --late 0s`, stdout: `tarry .*\n! mail: 1 message is due, the oldest for \S+, and nobody works on the queue\n  start a worker, .*\n2 queues: 1 scheduled, 1 ready, 0 leased, 0 dead\n` +
		topHead + `mail  1  0  0  0  -  -  \S+  \S+  -  AWAY  -\norder.unpaid  0  1  0  0  -  -  \S+  \S+  AWAY  -  -\n`},
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
	run1(t, world{env: []string{"TARRY_SERVER=http://127.0.0.1:1"}}, step{args: "top", code: exitUnavailable, stderr: `tarry: .*is it running\?.*\n`})
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

// What no row shows: what died of late, of each queue, and no longer when that is long ago.
func TestTopFindsDeaths(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	for _, queue := range []string{"mail", "mail", "news"} {
		bury(t, c, queue)
	}
	f := finder{now: time.Now()}
	f.beyond(t.Context(), c)
	if len(f.Problems) != 2 || f.Problems[0].Queue != "mail" || !strings.HasPrefix(f.Problems[0].Message, "2 messages died") || !strings.Contains(f.Problems[1].Message, "no such order") {
		t.Errorf("%+v", f.Problems)
	}
	f = finder{now: time.Now().Add(2 * lately)}
	if f.beyond(t.Context(), c); len(f.Problems) != 0 {
		t.Errorf("long after: %+v", f.Problems)
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
		rows, got, err := askBoard(t.Context(), c, most)
		if err != nil || len(rows) != min(most, 5) || got != more {
			t.Errorf("of 5 queues %d at most: %d, more: %v, %v", most, len(rows), got, err)
		}
	}
}

// A server that tells nothing any more, or nonsense, is left; one that refuses at once is
// not tried again.
func TestTopLeavesBadServers(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	api := server.New(c, nil)
	answer := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/live":
			api.ServeHTTP(w, r)
		case answer == "":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"error":{"code":"forbidden","message":"not for you"}}`)
		case answer == "silence":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, answer)
		}
	}))
	defer s.Close()
	e, err := engine.Open(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var told []news
	f := follower{e: e.(*httpengine.Engine), now: time.Now, silence: time.Hour}
	f.run(t.Context(), func(n news) { told = append(told, n) })
	if len(told) != 1 || told[0].err == nil || !strings.Contains(told[0].err.Error(), "not for you") {
		t.Errorf("refused: %+v", told)
	}
	answer = "silence"
	f.silence = time.Millisecond
	if err := f.listen(t.Context(), nil); err != errLiveSilent {
		t.Errorf("of a server that says nothing: %v", err)
	}
	begin := "event: begin\ndata: {\"now\":\"2030-01-01T00:00:00Z\",\"resumed\":false}\n\n"
	for text, want := range map[string]string{
		begin: "hung up",
		begin + "event: queues\ndata: {\"queues\":5}\n\n":                 "makes no sense",
		begin + "event: queues\ndata: " + strings.Repeat("x", 9<<20):      "hung up",
		begin + "event: end\ndata: {\"reason\":\"the server stops\"}\n\n": "the server stops",
	} {
		answer = text
		told = nil
		err := (&follower{e: e.(*httpengine.Engine), now: time.Now, silence: time.Hour}).listen(t.Context(), func(n news) { told = append(told, n) })
		if err == nil || !strings.Contains(err.Error(), want) || len(told) != 1 || !told[0].whole || told[0].skew < time.Hour {
			t.Errorf("%.60q: %v, told %+v", text, err, told)
		}
	}
}

// What is printed can be read by what reads the API.
func TestTopRates(t *testing.T) {
	for _, s := range []struct {
		steps []uint64
		want  float64
	}{{nil, 0}, {[]uint64{60}, 0}, {[]uint64{60, 1}, 1}, {[]uint64{600, 60, 0, 0, 0, 0, 60, 999}, 2}} {
		if got := perSecond(s.steps); got != s.want {
			t.Errorf("%v: %v a second, want %v", s.steps, got, s.want)
		}
	}
	if b, err := json.Marshal(round{}); err != nil || !strings.Contains(string(b), `"more":false`) {
		t.Errorf("%s %v", b, err)
	}
}
