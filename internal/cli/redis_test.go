package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/internal/cli/bench"
)

func TestCommandsOnRedis(t *testing.T) {
	w := world{env: []string{"TARRY_STORE=" + redistest.Start(t).URL()}}
	for _, s := range slices.Concat(commandSteps, scheduleSteps) {
		run1(t, w, s)
	}
}

// Two servers on one Redis are one store.
func TestServeOnRedis(t *testing.T) {
	url := redistest.Start(t).URL()
	w, s := served(t, url)
	other, o := served(t, url, "--beanstalk", "127.0.0.1:0")
	o.stderr.await(t, `the ids of jobs are larger than 2\^53`)
	server, _ := w.program(nil, nil).env("TARRY_SERVER")
	documented(t, server, "redis")
	r := w.start(t, "work", "mail", "--", "cat")
	r.stderr.await(t, "waiting for messages of mail")
	other.must(t, "push", "mail", "hello", "--key", "ann", "--in", "20ms")
	r.stderr.await(t, `acked mail id \d+ key ann`)
	if got := r.stdout.String(); got != "hello" {
		t.Errorf("the command wrote %q", got)
	}
	w.must(t, "push", "mail", "x", "--key", "bob", "--in", "1h")
	if code := s.stop(t); code != exitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	other.must(t, "get", "mail", "bob")
	j := dialJobs(t, o.stdout.await(t, jobsAddress)[1])
	id := strings.Fields(j.answers("put 0 3600 60 1\r\nx", "INSERTED "))[1]
	other.must(t, "get", "default", "--id", id)
}

func TestBenchOnRedis(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	out := world{}.must(t, "bench", "--store", url, "--scenario", "all", "--n", "400", "--clients", "8", "--rate", "2000", "--json", "--quiet")
	var ran []string
	for line := range strings.Lines(out) {
		r := object(t, line)
		ran = append(ran, r["scenario"].(string))
		if r["n"] != 400.0 || r["early"] != 0.0 || r["lost"] != 0.0 || r["duplicates"] != 0.0 {
			t.Errorf("%s", line)
		}
	}
	want := slices.DeleteFunc(slices.Clone(bench.Scenarios), func(s string) bool { return s == "push-raw" })
	if !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	if left := (world{}).must(t, "queues", "--store", url, "--json"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
