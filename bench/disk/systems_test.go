//go:build linux

package disk

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// whole is the system that does all jobs.
var whole = system{"store", "disk:DIR"}

// Each system does the jobs of its turns, and reports what the table is made of.
func TestTurns(t *testing.T) {
	for _, s := range []system{{"bare", "bare:DIR"}, {"behind", "behind:DIR"}, whole} {
		f := start(t, s, "push", 300, "-clients", "8", "-keys", "random").figures(t)
		if f["msgs/s"] <= 0 || f["cpu-us/msg"] <= 0 || f["rss-MB"] <= 0 || f["most-rss-MB"] < f["rss-MB"] {
			t.Errorf("push by %s: %v", s.name, f)
		}
	}
	for _, job := range []struct {
		name, rate string
		n          int
		args       []string
	}{
		{"churn", "msgs/s", 300, []string{"-keys", "random"}},
		{"lateness", "p50-ms", 1, []string{"-rate", "1000", "-span", "300ms"}},
		{"burst", "s", 1, []string{"-burst", "300"}},
	} {
		f := start(t, whole, job.name, job.n, job.args...).figures(t)
		for _, unit := range []string{"early", "lost", "twice"} {
			if v, ok := f[unit]; v != 0 || !ok {
				t.Errorf("%s: %v %s", job.name, v, unit)
			}
		}
		if f[job.rate] <= 0 || f["p99.9-ms"] < f["p99-ms"] {
			t.Errorf("%s: %v", job.name, f)
		}
	}
	f := start(t, whole, "instant", 1, "-instant", "300").figures(t)
	if f["early"]+f["twice"]+f["lost"]+f["others-lost"] != 0 || f["s"] <= 0 || f["others-max-ms"] < f["others-p50-ms"] {
		t.Errorf("instant: %v", f)
	}
}

// What is pushed outlives the process, and what is not there any more is missed.
func TestKilled(t *testing.T) {
	const n, cancelled = 2000, 30
	store, dir := whole, t.TempDir()
	p := start(t, store, "obey", 1, "-dir", dir)
	c := command{Do: "push", From: pending, To: pending + n, Soonest: time.Now().Add(time.Hour), Spread: time.Hour, Clients: 8, Batch: 100}
	a := p.ask(t, c)
	if a.Seconds <= 0 || a.CPU <= 0 || a.RSS <= 0 || a.Most < a.RSS || a.Disk < n*200 {
		t.Errorf("it answers %+v", a)
	}
	p.pause(t)
	p.resume(t)
	p.ask(t, command{Do: "cancel", From: pending + 50, To: pending + 50 + cancelled, Clients: 8})
	p.ask(t, command{Do: "more"})
	p.kill()
	for _, args := range [][]string{{}, {"-count"}} {
		f := start(t, store, "reopen", 1, append(args, "-dir", dir, "-first", strconv.Itoa(pending), "-pending", strconv.Itoa(n), "-span", "0")...).figures(t)
		if f["missing"] != cancelled || f["reopen-s"] <= 0 {
			t.Errorf("reopened with %v: %v", args, f)
		}
	}
	// Others that pend neither keep it from its end nor are in its way.
	f := start(t, store, "late", 1, "-dir", dir, "-rate", "1000", "-span", "200ms", "-beside", "500").figures(t)
	if f["lost"] != 0 || f["twice"] != 0 || f["early"] != 0 || f["p99-ms"] <= 0 || f["beside/s"] <= 0 {
		t.Errorf("late: %v", f)
	}
}

// What a bare log was given is in its file, of many callers at once, also behind a client.
func TestBare(t *testing.T) {
	for name, open := range map[string]func(dir string) (scenario.System, error){
		"bare":   func(dir string) (scenario.System, error) { return openBare(dir) },
		"behind": openBehind,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := open(dir)
			must(t, err)
			const callers, each = 8, 50
			done := make(chan error)
			for caller := range callers {
				go func() {
					for i := caller * each; i < (caller+1)*each; i += 5 {
						if err := s.Push(t.Context(), "q", i, time.Now()); err != nil {
							done <- err
							return
						}
						if err := s.PushMany(t.Context(), "q", i+1, i+5, func(int) time.Time { return time.Now() }); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range callers {
				must(t, <-done)
			}
			text, err := os.ReadFile(filepath.Join(dir, "log"))
			must(t, err)
			must(t, s.Close())
			if len(text) != bareSize {
				t.Errorf("the file has %d bytes", len(text))
			}
			written := strings.TrimRight(string(text), "\x00")
			for i := range callers * each {
				if record := scenario.Key(i) + string(scenario.Body(i)); strings.Count(written, record) != 1 {
					t.Errorf("%s is not there once", scenario.Key(i))
				}
			}
		})
	}
}
