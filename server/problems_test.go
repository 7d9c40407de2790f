package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	shapes "github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/trend"
)

// kindsOf returns the problems as words: the kind and the queue of each.
func kindsOf(all []server.Problem) string {
	var words []string
	for _, p := range all {
		words = append(words, strings.TrimSuffix(p.Problem+":"+p.Queue, ":"))
	}
	return strings.Join(words, " ")
}

// What is a problem, and what is not yet or no longer one.
func TestWhatIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trends := trend.New(nil)
		c := tarry.New(memengine.New(nil), &tarry.Config{Meter: trends.Meter()})
		defer c.Close()
		push := func(queue string, opts ...tarry.PushOption) {
			t.Helper()
			if _, err := c.Push(t.Context(), queue, nil, opts...); err != nil {
				t.Fatal(err)
			}
		}
		lease := func(queue string) tarry.Lease {
			t.Helper()
			all, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{queue}, Max: 1, LeaseOptions: tarry.LeaseOptions{TTR: time.Hour}})
			if err != nil || len(all.Messages) != 1 {
				t.Fatal(all, err)
			}
			return all.Messages[0]
		}
		settle := func(l tarry.Lease, do engine.Action) {
			t.Helper()
			out, err := c.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: do, Reason: "no such\norder"}})
			if err := cmpErr(err, out); err != nil {
				t.Fatal(err)
			}
		}
		find := func(late time.Duration, trends *trend.Recorder) []server.Problem {
			t.Helper()
			scan := server.Scan{Late: late, Now: time.Now(), Trends: trends}
			all, err := scan.Problems(t.Context(), c, c.AllQueues(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		is := func(when, want string) {
			t.Helper()
			if got := kindsOf(find(server.LateAfter, trends)); got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}

		if err := c.Pause(t.Context(), "idle", 0); err != nil {
			t.Fatal(err)
		}
		push("later", tarry.In(24*time.Hour))
		for _, q := range []string{"alone", "slow", "slow", "paused", "quick", "quick"} {
			push(q)
		}
		if err := c.Pause(t.Context(), "paused", 0); err != nil {
			t.Fatal(err)
		}
		lease("slow")
		is("at first", "")
		time.Sleep(server.LateAfter - time.Millisecond)
		is("before they are late", "")
		time.Sleep(time.Millisecond)
		settle(lease("quick"), engine.Ack)
		is("when they are late", "no_worker:alone late:quick late:slow paused:paused")
		if got := kindsOf(find(server.LateAfter, nil)); got != "no_worker:alone no_worker:quick late:slow paused:paused" {
			t.Errorf("without trends: %q", got)
		}
		if got := kindsOf(find(time.Hour, nil)); got != "" {
			t.Errorf("later counts as late: %q", got)
		}
		settle(lease("quick"), engine.Ack)
		is("when all of a queue were handed out late", "no_worker:alone late:slow paused:paused was_late:quick")

		settle(lease("alone"), engine.Bury)
		is("after a death", "late:slow deaths:alone paused:paused was_late:alone was_late:quick")
		all := find(server.LateAfter, trends)
		for i, want := range []string{
			"1 message is due, the oldest for 30s, with 1 lease held",
			"1 message died within 15m, the last of: no such order",
			"1 message is due, the oldest for 30s, and the queue is paused",
			"of 1 message handed out within 15m one in a hundred came later than 30s, the worst 30s late",
		} {
			if all[i].Message != want || !strings.Contains(all[i].Hint, "tarry ") {
				t.Errorf("%q with hint %q, want %q", all[i].Message, all[i].Hint, want)
			}
		}
		time.Sleep(server.DiedWithin + time.Millisecond)
		is("long after the death", "late:slow paused:paused")
	})
}

func cmpErr(err error, out []engine.Settled) error {
	if err == nil {
		err = out[0].Err
	}
	return err
}

// However many queues have problems, the worst are told, and that there are more.
func TestProblemsOfManyQueues(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	now := time.Now()
	scan := server.Scan{Late: server.LateAfter, Now: now}
	all, err := scan.Problems(t.Context(), c, func(yield func(tarry.QueueInfo, error) bool) {
		for i := range 25_000 {
			if !yield(tarry.QueueInfo{Queue: fmt.Sprint("q", i), Ready: 1, OldestReady: now.Add(-time.Minute - time.Duration(i)*time.Second)}, nil) {
				return
			}
		}
	})
	if err != nil || len(all) != 10_000 || all[0].Queue != "q24999" || all[9999].Queue != "q15000" {
		t.Errorf("%d problems, %v", len(all), err)
	}
	if all, err = scan.Problems(t.Context(), c, func(yield func(tarry.QueueInfo, error) bool) {
		_ = yield(tarry.QueueInfo{Queue: "q", Ready: 1, OldestReady: now.Add(-time.Hour)}, nil) && yield(tarry.QueueInfo{}, errOdd)
	}); !errors.Is(err, errOdd) || kindsOf(all) != "no_worker:q" {
		t.Errorf("before a failure %v were found, %v", all, err)
	}
}

var errOdd = errors.New("odd")

// The API and the probe tell the same.
func TestProblemsOverHTTP(t *testing.T) {
	c := tarry.New(memengine.New(nil), nil)
	defer c.Close()
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	if got := a.call(200, "GET", "/v1/problems", ""); fmt.Sprint(got) != "map[more:false problems:[]]" {
		t.Errorf("of an empty store: %v", got)
	}
	for i := range 1001 {
		a.call(201, "POST", fmt.Sprintf("/v1/queues/q%d/messages", i), fmt.Sprintf(`{"due":%q}`, time.Now().Add(-time.Hour).Format(time.RFC3339)))
	}
	var ready, told map[string]any
	for { // what was found before may be told for a moment
		if told = a.call(200, "GET", "/v1/problems", ""); len(told["problems"].([]any)) > 0 {
			break
		}
	}
	if len(told["problems"].([]any)) != 1000 || told["more"] != true {
		t.Errorf("%d problems, more: %v", len(told["problems"].([]any)), told["more"])
	}
	ready = a.call(200, "GET", "/readyz", "")
	same, all := 0, told["problems"].([]any)
	for i, p := range ready["problems"].([]any) {
		if field(t, p, "problem") == "no_worker" && field(t, p, "queue") == field(t, all[i], "queue") {
			same++
		}
	}
	if ready["status"] != "ready" || same != len(all) {
		t.Errorf("of %d problems readyz tells %d", len(all), same)
	}
	if got := a.call(200, "GET", "/v1/problems?late=2h", ""); len(got["problems"].([]any)) != 0 || got["more"] != false {
		t.Errorf("two hours later: %v", got)
	}
	for query, want := range map[string]string{"late=x": `late: "x" is not a duration`, "late=-1h": "late: -1h is negative", "queue=q": "queue: no such parameter"} {
		w := a.send("GET", "/v1/problems?"+query, "")
		if _, message := checkError(t, w); w.Code != 400 || message != want {
			t.Errorf("%s: %d %s, want %s", query, w.Code, message, want)
		}
	}
}

// listing is an engine whose lists of queues wait to be let go on, and are counted.
type listing struct {
	*memengine.Engine
	lists atomic.Int64
	hold  atomic.Pointer[chan struct{}] // nil: nothing is held
}

func (l *listing) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	l.lists.Add(1)
	if hold := l.hold.Load(); hold != nil {
		select {
		case <-*hold:
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
	return l.Engine.Queues(ctx, after, limit)
}

// Many who ask share one scan, and while a scan takes long a probe and everybody else are
// told what the one before found.
func TestOneScanServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &listing{Engine: memengine.New(nil)}
		c := tarry.New(e, nil)
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, nil)}
		hold := make(chan struct{})
		e.hold.Store(&hold)

		began := time.Now()
		if got := a.call(200, "GET", "/readyz", ""); got["status"] != "ready" || got["problems"] != nil || time.Since(began) > time.Second {
			t.Errorf("a probe is answered with %v after %s, while the first scan is under way", got, time.Since(began))
		}
		a.call(201, "POST", "/v1/queues/q/messages", fmt.Sprintf(`{"due":%q}`, time.Now().Add(-time.Hour).Format(time.RFC3339)))
		answers := make(chan int, 100)
		for range cap(answers) {
			go func() { answers <- len(a.call(200, "GET", "/v1/problems", "")["problems"].([]any)) }()
		}
		synctest.Wait()
		close(hold)
		for range cap(answers) {
			if n := <-answers; n != 1 {
				t.Fatalf("%d problems, want 1", n)
			}
		}
		if n := e.lists.Load(); n != 1 {
			t.Errorf("%d lists for 101 requests at once", n)
		}
		hold = make(chan struct{})
		e.hold.Store(&hold)
		time.Sleep(time.Minute)
		began = time.Now()
		if got := a.call(200, "GET", "/v1/problems", ""); len(got["problems"].([]any)) != 1 || time.Since(began) > 2*time.Second {
			t.Errorf("while a scan takes long: %v after %s", got, time.Since(began))
		}
		if got := a.call(200, "GET", "/readyz", ""); len(got["problems"].([]any)) != 1 {
			t.Errorf("a probe is told %v", got)
		}
		close(hold)
		synctest.Wait()
	})
}

// A scan that fails is no news that all is well, and hides no problem that is known without it.
func TestProblemsOfAStoreThatFails(t *testing.T) {
	c := tarry.New(failingList{memengine.New(nil)}, nil)
	defer c.Close()
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	for _, path := range []string{"/v1/problems", "/v1/problems?late=1s"} {
		if kinds, more := a.problems(path); kinds != "store server" || !more {
			t.Errorf("%s: %s, more: %v", path, kinds, more)
		}
	}
	if kinds, _ := a.problems("/readyz"); kinds != "store server" {
		t.Errorf("a probe is told of %s", kinds)
	}
}

// problems returns the kinds of problems that a path tells, and whether there are more.
func (a *api) problems(path string) (kinds string, more bool) {
	a.Helper()
	w := a.send("GET", path, "")
	var told shapes.Problems
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != http.StatusOK {
		a.Fatal(path, w.Code, w.Body, err)
	}
	return kindsOf(told.Problems), told.More
}

func (failingList) Troubles() []engine.Trouble {
	return []engine.Trouble{{Message: "slow", Hint: "wait"}}
}

type failingList struct{ *memengine.Engine }

func (failingList) Queues(context.Context, string, int) ([]engine.QueueInfo, string, error) {
	return nil, "", engine.ErrUnavailable
}

// oneBad is an engine that cannot list the messages of one queue.
type oneBad struct{ *memengine.Engine }

func (e oneBad) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	if q.Queue == "bad" {
		return engine.Page{}, errOdd
	}
	return e.Engine.List(ctx, q)
}

// A queue that cannot be read hides no problem of another.
func TestProblemsBesideAQueueThatFails(t *testing.T) {
	c := tarry.New(oneBad{memengine.New(nil)}, nil)
	defer c.Close()
	for _, queue := range []string{"bad", "good"} {
		if _, err := c.Push(t.Context(), queue, nil); err != nil {
			t.Fatal(err)
		}
		l, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{queue}, Max: 1})
		if err != nil || len(l.Messages) != 1 {
			t.Fatal(l, err)
		}
		out, err := c.Settle(t.Context(), []engine.Settlement{{Token: l.Messages[0].Token, Do: engine.Bury}})
		if err := cmpErr(err, out); err != nil {
			t.Fatal(err)
		}
	}
	a := &api{TB: t, c: c, s: newServer(t, c, nil)}
	for _, path := range []string{"/v1/problems", "/v1/problems?late=1h"} {
		if kinds, more := a.problems(path); kinds != "server deaths:good" || !more {
			t.Errorf("%s: %s, more: %v", path, kinds, more)
		}
	}
}

// At its time limit a scan tells what it has found, and soon afterwards there is a new one.
// Looks with a time of their own take place one at a time.
func TestScanThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &listing{Engine: memengine.New(nil)}
		c := tarry.New(e, nil)
		defer c.Close()
		a := &api{TB: t, c: c, s: newServer(t, c, nil)}
		if _, err := c.Push(t.Context(), "q", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		hold := make(chan struct{})
		e.hold.Store(&hold)
		began := time.Now()
		var done sync.WaitGroup
		for _, path := range []string{"/v1/problems", "/v1/problems?late=1s", "/v1/problems?late=2s"} {
			done.Go(func() {
				if kinds, more := a.problems(path); kinds != "server" || !more {
					t.Errorf("%s: %s, more: %v", path, kinds, more)
				}
			})
		}
		synctest.Wait()
		if n := e.lists.Load(); n != 2 {
			t.Errorf("%d scans at a time, want the shared one and one more", n)
		}
		done.Wait()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("answered after %s", took)
		}
		e.hold.Store(nil)
		time.Sleep(2 * time.Second)
		for _, path := range []string{"/v1/problems", "/v1/problems?late=1s"} {
			if kinds, more := a.problems(path); kinds != "no_worker:q" || more {
				t.Errorf("2 s later %s: %s, more: %v", path, kinds, more)
			}
		}
	})
}

// The alert rules have the bounds of the server.
func TestAlertsHaveTheSameBounds(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join("..", "docs", "operations", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	late, died := fmt.Sprintf(`> %d\n`, int(server.LateAfter.Seconds())), fmt.Sprintf(`\[%s\]`, tarry.FormatDuration(server.DiedWithin))
	for alert, bound := range map[string]string{"TarryLate": late, "TarryBacklogAgeing": late, "TarryNoWorker": late, "TarryDeaths": died} {
		rule := regexp.MustCompile(`(?s)- alert: ` + alert + `\n.*?\n\n`).Find(rules)
		if rule == nil || !regexp.MustCompile(bound).Match(rule) {
			t.Errorf("the rule has no bound %s:\n%s", bound, rule)
		}
	}
}
