package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
)

const evil = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202egnp.exe\r\x00\x7f"

// harmless fails when a terminal would obey what was written.
func harmless(t *testing.T, what, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && obeyed(r) {
			t.Errorf("%s writes %q", what, s)
			return
		}
	}
}

// Whatever a message holds, nothing that a person is shown of it rules the terminal.
func TestNothingRulesTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	w := world{env: []string{"TARRY_STORE=disk:data"}}
	id := object(t, w.must(t, "push", "mail", evil, "--key", evil, "--content-type", "text/"+evil, "--header", "a"+evil+"="+evil, "--json"))["id"].(string)
	for _, args := range [][]string{
		{"get", "mail", evil}, {"get", "mail", "--id", id}, {"ls", "mail", "--body"}, {"ls", "mail", "--state", "ready", "--body"}, {"push", "mail", "x", "--key", evil},
		{"push", "mail", "x", "--key", evil, "--on-conflict", "keep"}, {"reschedule", "mail", evil, "--in", "1h"}, {"rearm", "mail", evil, "--in", "0s"}, {"get", "mail", "none" + evil},
		{"cancel", "mail", "none" + evil}, {"push", "ma" + evil, "x"}, {"ls", "mail", "--state", evil}, {"get", "mail", "--id", evil}, {"push", "mail", "x", "--" + evil}, {evil},
		{"queues", "ma" + evil}, {"pause", "mail" + evil}, {"ls", "mail", "--state", "ready", "--key-prefix", evil}, {"queues", "--config", evil}, {"queues", "--store", "disk:" + evil[:3]},
		{"cancel", "mail", evil},
	} {
		o := w.tarry(t, args...)
		harmless(t, strings.Join(args[:1], " ")+" on standard output", o.stdout)
		harmless(t, strings.Join(args[:1], " ")+" on standard error", o.stderr)
	}
	for _, kind := range []tarry.EventKind{tarry.Acked, tarry.Buried, tarry.Retried, tarry.EngineFailed, tarry.Died, tarry.Expired} {
		harmless(t, "work", tell(tarry.Event{Kind: kind, Queue: "q" + evil, ID: 7, Key: evil, Err: fmt.Errorf("failed: %s", evil)}))
	}
	if got := w.tarry(t, "push", "mail", "x", "--key", evil).stdout; !strings.Contains(got, `key "\x1b[2J\x1b]0;owned\a\u009b31m\u202egnp.exe\r\x00\x7f",`) {
		t.Errorf("the key is not told from others: %s", got)
	}
}

func TestReadable(t *testing.T) {
	for body, want := range map[string]string{
		"":               "(empty)",
		"one\n\ttwo\n":   "one\n\ttwo",
		"one\r\ntwo\r\n": "one\ntwo",
		"family \U0001F468\u200d\U0001F469 می\u200cخواهم": "family \U0001F468\u200d\U0001F469 می\u200cخواهم",
		"over\rwritten": "(12 bytes; --json shows them)",
		"\x1b[2J":       "(4 bytes; --json shows them)",
		"a\u009bb":      "(4 bytes; --json shows them)",
		"\u202eabc":     "(6 bytes; --json shows them)",
		"\xff":          "(1 bytes; --json shows them)",
	} {
		if got := readable([]byte(body)); got != want {
			t.Errorf("%q is shown as %q, want %q", body, got, want)
		}
	}
}

func TestHeadersInJSON(t *testing.T) {
	w, _ := served(t, "mem:")
	w.must(t, "push", "mail", "x", "--key", "k", "--header", "z=1", "--header", "a=<&>\x1b", "--header", "z=2", "--header", "b=3", "--header", "z=4")
	out := w.must(t, "get", "mail", "k", "--json")
	if want := `"headers":{"z":["1","2","4"],"a":"<&>\u001b","b":"3"}`; !strings.Contains(out, want) {
		t.Errorf("got %s, want %s", out, want)
	}
}

// A long table comes page by page, and its columns stay in line.
func TestListStreams(t *testing.T) {
	eng := memengine.New(nil)
	c := tarry.New(eng, nil)
	defer c.Close()
	for i := range 1200 {
		key := fmt.Sprintf("key-%d", i)
		if i == 700 {
			key += " is a longer one"
		}
		if _, err := c.Push(t.Context(), "q", nil, tarry.Key(key), tarry.In(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	r, out := io.Pipe()
	p := world{}.program(out, io.Discard)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- p.listWhere(ctx, c, tarry.Filter{Queue: "q", States: []tarry.State{tarry.Scheduled}}) }()
	first := make([]byte, 2000)
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	// Not all has been asked for yet: without the store there is no more.
	cancel()
	rest := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(r)
		rest <- string(b)
	}()
	if err := <-done; err == nil {
		t.Error("the list was made as a whole before anything was written")
	}
	_ = out.Close()
	<-rest

	var all strings.Builder
	p = world{}.program(&all, io.Discard)
	if err := p.listWhere(t.Context(), c, tarry.Filter{Queue: "q", States: []tarry.State{tarry.Scheduled}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(all.String(), "\n"), "\n")
	if len(lines) != 1201 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, at := range []int{1, 499} {
		if strings.Index(lines[at], "scheduled") != strings.Index(lines[0], "STATE") {
			t.Errorf("%d: line %d is out of line: %q under %q", i, at, lines[at], lines[0])
		}
	}
	if strings.Index(lines[1200], "scheduled") != strings.Index(lines[701], "scheduled")+1 { // ids have become longer
		t.Errorf("%q and %q are not in line", lines[701], lines[1200])
	}
}

func TestAway(t *testing.T) {
	now := time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		{}: "", now.Add(30*time.Minute + time.Millisecond): "in 30m", now.Add(-1600 * time.Millisecond): "2s ago",
		now.Add(29998 * time.Millisecond): "in 30s", now.Add(-2 * time.Millisecond): "now", now.Add(304 * time.Millisecond): "in 300ms",
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "in more than 292 years",
	} {
		if got := away(at, now); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
