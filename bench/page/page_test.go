package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/page/measured"
)

// set sets a flag for a test.
func set[T any](t *testing.T, flag *T, to T) {
	was := *flag
	*flag = to
	t.Cleanup(func() { *flag = was })
}

func TestPlan(t *testing.T) {
	set(t, only, "disk,redis,asynq,nats-synced")
	set(t, parts, "calls,burst,growth")
	set(t, turns, 2)
	done := []measured.Result{
		{System: "disk", Part: "calls"},
		{System: "redis", Part: "calls", Turn: 1, Error: "it has failed"},
		{System: "asynq", Part: "burst", Turn: 1},
	}
	got := plan(done)
	var calls [2][]string
	for _, j := range got {
		if j.part == "calls" {
			calls[j.turn] = append(calls[j.turn], j.system)
		}
		if j.system == "disk" && j.part == "calls" && j.turn == 0 || j.system == "asynq" && j.part == "burst" && j.turn == 1 {
			t.Errorf("%v is measured again", j)
		}
		if j.system == "nats-synced" && j.part == "burst" || j.system != "disk" && j.part == "growth" {
			t.Errorf("%v is measured", j)
		}
	}
	if a, b := strings.Join(calls[0], " "), strings.Join(calls[1], " "); a != "nats-synced redis asynq" || b != "nats-synced redis asynq disk" {
		t.Errorf("the turns of calls are %s, then %s", a, b)
	}
	if n := len(got); n != 3+4+3+2+1 {
		t.Errorf("%d measurements are planned", n)
	}
	set(t, parts, "none")
	if got := plan(nil); len(got) != 0 {
		t.Errorf("of no part %v are planned", got)
	}
}

// A run that is not resumed drops what it measures, and keeps the rest.
func TestForget(t *testing.T) {
	set(t, resultsFile, filepath.Join(t.TempDir(), "results"))
	for _, r := range []measured.Result{{System: "disk", Part: "late"}, {System: "disk", Part: "calls"}, {System: "redis", Part: "late"}} {
		if err := add(r); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(*resultsFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"System":"cut o`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	set(t, only, "disk")
	set(t, parts, "late,burst")
	all, err := read(*resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forget(all); err != nil {
		t.Fatal(err)
	}
	if all, err = read(*resultsFile); err != nil || len(all) != 2 || all[0].Part != "calls" || all[1].System != "redis" {
		t.Errorf("%v are left: %v", all, err)
	}
}

// late has n messages that are so late.
func late(n int, by time.Duration) measured.Distribution {
	d := measured.Distribution{}
	for range n {
		d.Add(by)
	}
	return d
}

var sample = figures{
	{System: "about", Version: "Measured on a machine."},
	{System: "redis", Part: "calls", Turn: 0, Figures: map[string]float64{"push/s": 1000, "cancel/s": 30}, Version: "Redis 7"},
	{System: "redis", Part: "calls", Turn: 1, Figures: map[string]float64{"push/s": 3000, "cancel/s": 30}, Version: "Redis 7"},
	{System: "asynq", Part: "calls", Figures: map[string]float64{"push/s": 2050, "cancel/s": 33}, Version: "Redis 7"},
	{System: "bullmq", Part: "calls", Error: "it has failed"},
	{System: "redis", Part: "late", Figures: map[string]float64{"max-ms": 8, "lost": 0, "cpu-us/msg": 100}, Late: late(1000, 5*time.Millisecond)},
	{System: "redis", Part: "late", Turn: 1, Figures: map[string]float64{"max-ms": 7}, Late: late(1000, time.Millisecond)},
	{System: "asynq", Part: "late", Figures: map[string]float64{"max-ms": 2, "early": 78, "twice": 1, "cpu-us/msg": 97}, Late: late(1000, 1990*time.Microsecond)},
	{System: "asynq", Part: "burst", Figures: map[string]float64{"early": 2}},
	{System: "asynq", Part: "pending", Figures: map[string]float64{"memory-B/msg": 600, "missing": 4}},
	{System: "disk", Part: "growth", Figures: map[string]float64{"pending": 1000, "push/s": 5, "memory-MB": 20, "max-ms": 1}, Late: late(10, time.Millisecond)},
	{System: "disk", Part: "growth", Figures: map[string]float64{"pending": 10_000, "push/s": 6, "missing": -1}},
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.1: "0.1", 250: "250", 1000: "1 k", 25_000: "25 k", 1e6: "1 M", 1e8: "100 M", 0.30000000000000004: "0.3"} {
		if got := short(v); got != want {
			t.Errorf("%v is %s, not %s", v, got, want)
		}
	}
}

// The page gets its tables and plots, and keeps what is written by hand.
func TestWrite(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "by hand\n"
	for _, name := range []string{"about", "calls", "due", "pending", "growth"} {
		text += "<!-- measured: " + name + ", made by make bench-page -->\nold\n" + endMark + "after " + name + "\n"
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time over its own
		if err := write(page, sample); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"by hand\n<!-- measured: about, made by make bench-page -->\nMeasured on a machine. Servers: Redis 7.\nNot measured, for an error: bullmq (calls).\n" + endMark + "after about\n",
		"| **tarry on Redis** | kill -9 | – | 2,000 | – | – | 30 |\n| asynq | kill -9 | – | 2,050 | – | – | **33** |\n" + endMark,
		"| **tarry on Redis** | 1.01 | 5.02 | 5.02 | 100 | – |\n| asynq, **80 early**, **1 twice** | 2 | **2** | 2 | 97 | – |\n",
		"| asynq, **4 missing** | 600 | – | – |\n" + endMark,
		"| 1,000 | 5 | – | 1 | 1 | 20 | – | – | – |\n| 10,000 | 6 | – | – | – | – | – | – | -1 |\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the page lacks\n%s\nit is\n%s", want, got)
		}
	}
	for _, name := range []string{"lateness.svg", "growth.svg"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSuffix(page, ".md"), name))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(string(text), `class="line `); n < 4 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
	if err := write(page, nil); err != nil {
		t.Errorf("without results: %v", err)
	}
	if _, err := replace([]byte("no marks"), "calls", nil); err == nil {
		t.Error("a page without marks is written")
	}
}
