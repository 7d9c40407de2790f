package diskengine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
)

// TestPurgeTakesWhatWaitedWhenItBegan changes messages between the chunks of a
// purge.
func TestPurgeTakesWhatWaitedWhenItBegan(t *testing.T) {
	e, _ := openMem(t)
	ctx := t.Context()
	settle := func(token string, do engine.Action) {
		t.Helper()
		s, err := e.Settle(ctx, []engine.Settlement{{Token: token, Do: do}})
		if err != nil || s[0].Err != nil {
			t.Fatal(err, s)
		}
	}
	pushAll(t, e, []engine.Message{waiting("leased", 0), waiting("released", 0), waiting("dead", 0)})
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 3, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 3 {
		t.Fatal(err, g)
	}
	tokens := map[string]string{}
	for _, l := range g.Queues[0].Messages {
		tokens[l.Key] = l.Token
	}
	settle(tokens["dead"], engine.Bury)
	var msgs []engine.Message
	for i := range 2 * sweepChunk {
		msgs = append(msgs, waiting(fmt.Sprint("old-", i), time.Duration(i)*time.Second))
	}
	msgs = append(msgs, waiting("later", 50*time.Hour), waiting("replaced", 51*time.Hour), waiting("last", 60*time.Hour))
	ids := pushAll(t, e, msgs)

	s := &sweep{q: e.queue("q"), kind: kindDue}
	if err := e.survey(ctx, "purge", s.q, s); err != nil {
		t.Fatal(err)
	}
	var total int64
	chunk := func() {
		t.Helper()
		err := e.do(ctx, "purge", func(now clock, p *pending) error {
			n, err := s.purgeWaiting(now, p)
			total += n
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	chunk()
	// Behind the walk, ahead of it, and away from where it would have been met.
	pushAll(t, e, []engine.Message{waiting("new", 0), waiting("newer", 59*time.Hour)})
	if _, err := e.Reschedule(ctx, engine.Ref{Queue: "q", Key: "later"}, engine.When{}); err != nil {
		t.Fatal(err)
	}
	m := waiting("replaced", time.Second)
	m.OnConflict = engine.Replace
	pushAll(t, e, []engine.Message{m})
	settle(tokens["released"], engine.Release)
	if _, err := e.Reschedule(ctx, engine.Ref{Queue: "q", Key: "released"}, engine.When{In: 55 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if r, err := e.Redrive(ctx, "q", nil, 0); err != nil || r.Redriven != 1 {
		t.Fatal(err, r)
	}
	for !s.done {
		chunk()
	}
	if want := int64(len(ids)); total != want {
		t.Errorf("purged %d, want %d", total, want)
	}
	for key, there := range map[string]bool{
		"leased": true, "released": true, "dead": true, "new": true, "newer": true,
		"old-0": false, fmt.Sprint("old-", 2*sweepChunk-1): false, "later": false, "replaced": false, "last": false,
	} {
		_, err := e.Get(ctx, engine.Ref{Queue: "q", Key: key})
		if found := err == nil; found != there || err != nil && !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if len(s.q.sweeps) != 0 {
		t.Error("the queue still remembers the purge")
	}
	sound(t, s.q)
}

// TestSweepForgets keeps no more of what is spared than lies ahead.
func TestSweepForgets(t *testing.T) {
	s := &sweep{bound: 1 << 30, spared: make(map[engine.ID]position), prune: 100, from: position{at: 50}}
	for i := range 1000 {
		s.note([]nearOp{{position: position{int64(i % 60), engine.ID(i + 1)}, put: true}})
		s.prune = min(s.prune, 300)
	}
	if n := len(s.spared); n < 160 || n > 301 {
		t.Errorf("%d are remembered", n)
	}
}

// TestPurgeEndsWithClose closes the engine during a purge: that ends early, and Close
// leaves nothing behind.
func TestPurgeEndsWithClose(t *testing.T) {
	for _, what := range []string{"purge", "redrive"} {
		t.Run(what, func(t *testing.T) {
			var e *Engine
			closed := make(chan error, 1)
			calls := -1 // of the clock; negative: not counted
			cfg := Config{FS: vfs.NewMem(), Logger: quietLog, MinFreeBytes: -1, Now: func() time.Time {
				if calls >= 0 {
					calls++
				}
				if calls == 3 {
					go func() { closed <- e.Close() }()
					<-e.done
				}
				return time.UnixMilli(1e12)
			}}
			var err error
			if e, err = Open("data", &cfg); err != nil {
				t.Fatal(err)
			}
			var msgs []engine.Message
			for i := range 3 * sweepChunk {
				msgs = append(msgs, waiting(fmt.Sprint(i), 0))
			}
			pushAll(t, e, msgs)
			if what == "redrive" {
				g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: len(msgs)}})
				if err != nil {
					t.Fatal(err)
				}
				var bury []engine.Settlement
				for _, l := range g.Queues[0].Messages {
					bury = append(bury, engine.Settlement{Token: l.Token, Do: engine.Bury})
				}
				if _, err := e.Settle(t.Context(), bury); err != nil {
					t.Fatal(err)
				}
			}
			calls = 0
			var n int64
			if what == "purge" {
				n, err = e.Purge(t.Context(), "q", engine.PurgeDead)
			} else {
				r, rerr := e.Redrive(t.Context(), "q", nil, 0)
				n, err = r.Redriven, rerr
			}
			if !errors.Is(err, engine.ErrClosed) || n >= int64(len(msgs)) {
				t.Errorf("%d, %v", n, err)
			}
			if err := <-closed; err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// TestPurgeSparesForGood has a purge forget whom it spared behind itself: that one
// is spared though it is rescheduled to where the walk has yet to come.
func TestPurgeSparesForGood(t *testing.T) {
	e, _ := openMem(t)
	ctx := t.Context()
	pushAll(t, e, []engine.Message{waiting("a", 0)})
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, Remote: true}})
	if err != nil {
		t.Fatal(err)
	}
	var msgs []engine.Message
	for i := range 3 * sweepChunk {
		msgs = append(msgs, waiting(fmt.Sprint(i), time.Hour))
	}
	pushAll(t, e, msgs)
	s := &sweep{q: e.queue("q"), kind: kindDue}
	if err := e.survey(ctx, "purge", s.q, s); err != nil {
		t.Fatal(err)
	}
	s.prune = 0 // forget at once
	chunk := func() {
		t.Helper()
		if err := e.do(ctx, "purge", func(now clock, p *pending) error {
			_, err := s.purgeWaiting(now, p)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	chunk()
	r, err := e.Settle(ctx, []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Release}})
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r)
	}
	if _, err := e.Reschedule(ctx, engine.Ref{Queue: "q", Key: "a"}, engine.When{In: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for !s.done {
		chunk()
	}
	if _, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "a"}); err != nil {
		t.Errorf("the spared one: %v", err)
	}
	sound(t, s.q)
}

// TestPurgeSparesWhatDiesMeanwhile has a leased message die while a purge takes what
// waits: it is none of the dead that are purged too.
func TestPurgeSparesWhatDiesMeanwhile(t *testing.T) {
	e, _ := openMem(t)
	ctx := t.Context()
	pushAll(t, e, []engine.Message{waiting("a", 0)})
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 1, Remote: true}})
	if err != nil {
		t.Fatal(err)
	}
	pushAll(t, e, []engine.Message{waiting("b", 0)})
	calls, was := 0, e.cfg.Now
	e.cfg.Now = func() time.Time {
		if calls++; calls == 3 {
			calls = 10
			r, err := e.Settle(ctx, []engine.Settlement{{Token: g.Queues[0].Messages[0].Token, Do: engine.Bury}})
			if err != nil || r[0].Err != nil {
				t.Error(err, r)
			}
		}
		return was()
	}
	if n, err := e.Purge(ctx, "q", engine.PurgeDead); err != nil || n != 1 {
		t.Errorf("purged %d, %v", n, err)
	}
	if _, err := e.Get(ctx, engine.Ref{Queue: "q", Key: "a"}); err != nil || calls < 10 {
		t.Error(err, calls)
	}
}
