package diskengine_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// take leases the first ready message for a worker in another process.
func take(t testing.TB, e *diskengine.Engine, worker string) engine.Lease {
	t.Helper()
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1, TTR: time.Minute, Remote: true, Worker: worker}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		t.Fatalf("%v, %+v", err, g)
	}
	return g.Queues[0].Messages[0]
}

// failing makes a store with messages that have failed in each way, and one that is leased.
func failing(t testing.TB, e *diskengine.Engine, clock *enginetest.Clock) (keys []string) {
	t.Helper()
	end := func(l engine.Lease, do engine.Action, reason string) {
		t.Helper()
		s, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: do, When: &engine.When{}, TTR: time.Hour, Reason: reason}})
		must(t, errors.Join(err, s[0].Err))
	}
	last := engine.DefaultPriority + uint32(1)
	for _, key := range []string{"retried", "buried", "late", "spent", "lapsed", "leased"} {
		m := engine.Message{Queue: "q", Key: key, Terms: engine.Terms{Isolate: new(false)}}
		if key == "spent" {
			m.MaxAttempts = 1
		}
		if key == "lapsed" { // ready, so it must not be leased next
			m.Priority = &last
		}
		must(t, pushAll(t, e, m))
		for n := 1; key == "retried" && n <= 7; n++ {
			end(take(t, e, fmt.Sprint("w", n)), engine.Retry, fmt.Sprint("reason ", n, strings.Repeat("é", engine.MaxReason)))
		}
		l := take(t, e, "worker of "+key)
		switch key {
		case "retried":
			end(l, engine.Snooze, "")
			end(take(t, e, "w"), engine.Bury, "at last")
		case "buried":
			end(l, engine.Bury, "no luck")
		case "late", "spent", "lapsed":
			clock.Advance(2 * time.Minute)
			if key == "late" {
				end(l, engine.Extend, "")
				if i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID}); err != nil || i.Worker != "worker of late" || len(i.Failures) != 1 {
					t.Fatalf("extended late: %+v, %v", i, err)
				}
			}
		}
		keys = append(keys, key)
	}
	return keys
}

// TestFailuresAndWorkersAreKept: whatever a store goes through, messages show the failures
// that they had, and leases their workers.
func TestFailuresAndWorkersAreKept(t *testing.T) {
	p := newPlace(disktest.New(nil), nil)
	clock := enginetest.NewClock()
	p.cfg.Now = clock.Now
	e := p.open(t)
	keys := failing(t, e, clock)
	shown := func() map[string]engine.Info {
		t.Helper()
		all := map[string]engine.Info{}
		for _, key := range keys {
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: key})
			must(t, err)
			all[key] = i
		}
		return all
	}
	want := shown()
	for key, n := range map[string]int{"retried": 5, "buried": 1, "late": 1, "spent": 1, "lapsed": 1, "leased": 0} {
		i := want[key]
		if len(i.Failures) != n || n == 1 && i.Failures[0].Worker != "worker of "+key || (i.State == engine.Leased) != (i.Worker != "") {
			t.Errorf("%s: %+v", key, i)
		}
	}
	again := func(dir string) {
		t.Helper()
		p.dir = cmp.Or(dir, p.dir)
		e = p.open(t)
	}
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"salvaged from the log", func() {
			must(t, e.Close())
			salvaged(t, p.fs, p.dir, "/from-log")
			again("/from-log")
		}},
		{"flushed", func() { must(t, e.Flush(t.Context())) }},
		{"opened again", func() { must(t, e.Close()); again("") }},
		{"merged", func() { must(t, e.Merge(t.Context())) }},
		{"killed", func() {
			disk := p.fs.(*disktest.Disk).Kill()
			must(t, e.Close())
			p.fs = disk
			again("")
		}},
		{"restored", func() {
			_, err := e.Backup(t.Context(), "/backup")
			must(t, errors.Join(err, e.Close()))
			_, err = diskengine.RestoreOn(t.Context(), p.fs, "/backup", "/restored")
			must(t, err)
			again("/restored")
		}},
		{"salvaged", func() {
			must(t, e.Close())
			_, err := diskengine.SalvageOn(t.Context(), p.fs, "/backup", "/salvaged")
			must(t, err)
			again("/salvaged")
		}},
	} {
		way.do()
		for key, got := range shown() {
			if !reflect.DeepEqual(got, want[key]) {
				t.Errorf("%s: %s is\n%+v, was\n%+v", way.name, key, got, want[key])
			}
		}
	}
	// A lapse stays one when the clock is set back.
	must(t, errors.Join(e.Flush(t.Context()), e.Flush(t.Context()), e.Close()))
	clock.Advance(-5 * time.Minute)
	again("")
	i := shown()["lapsed"]
	if i.State == engine.Leased || len(i.Failures) != 1 || i.Failures[0].Worker != "worker of lapsed" {
		t.Errorf("before it lapsed it is %+v", i)
	}
	must(t, e.Close())
}
