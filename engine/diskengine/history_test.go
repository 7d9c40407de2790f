package diskengine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// history lists all finished messages of a queue, the newest first, in pages.
func history(t testing.TB, e *diskengine.Engine, queue string) (all []engine.Info) {
	t.Helper()
	for q := (engine.ListQuery{Queue: queue, State: engine.Finished, Newest: true, Limit: 7}); ; {
		page, err := e.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Messages...)
		if q.After = page.Next; q.After == "" {
			return all
		}
	}
}

// TestHistoryOutOfSSTables acks messages that are in an sstable, some with a long body or with failures
// that are longer than what is read of them: what is listed is all that was known of them. It stays the
// same while it moves to sstables, these are merged, and the store is opened again.
func TestHistoryOutOfSSTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, History: engine.History{Keep: time.Hour}}, small}
		e := p.open(t)
		var msgs []engine.Message
		for i := range 30 {
			m := message("q", fmt.Sprint("key-", i), 0)
			if m.Body = noise(50); i%3 == 0 {
				m.Body = noise(300 << 10)
			}
			msgs = append(msgs, m)
		}
		msgs[1].Key = ""
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		for range engine.MaxFailures {
			var all []engine.Settlement
			for i, l := range lease(t, e, "q", len(msgs)) {
				do := engine.Settlement{Token: l.Token, Do: engine.Release}
				if i%2 == 0 {
					do = engine.Settlement{Token: l.Token, Do: engine.Retry, Reason: strings.Repeat("x", engine.MaxReason), When: new(engine.When)}
				}
				all = append(all, do)
			}
			if _, err := e.Settle(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if err := e.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: len(msgs), TTR: time.Hour, Worker: "w"}})
		if err != nil || len(g.Queues[0].Messages) != len(msgs) {
			t.Fatal(err, len(g.Queues[0].Messages))
		}
		var want []engine.Info
		var tokens []engine.Settlement
		for _, l := range g.Queues[0].Messages {
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: l.ID})
			if err != nil || !i.Started.Equal(g.Now) {
				t.Fatal(err, i.Started, g.Now)
			}
			want = append(want, engine.Info{
				ID: i.ID, Queue: "q", Key: i.Key, State: engine.Finished, Due: i.Due, Created: i.Created, Attempt: i.Attempt, LastError: i.LastError,
				Failures: i.Failures, Worker: "w", Started: g.Now, Ending: engine.Acked,
			})
			tokens = append(tokens, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
		for i := range tokens { // each at an instant of its own
			time.Sleep(time.Second)
			began := time.Now()
			if s, err := e.Settle(t.Context(), tokens[i:i+1]); err != nil || s[0].Err != nil {
				t.Fatal(err, s)
			}
			m, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: want[i].ID})
			if err != nil || m.Ended.Before(began) || m.Ended.After(time.Now()) { // a merge under way may let time pass
				t.Fatal(err, began, m.Ended, time.Now())
			}
			want[i].Ended = m.Ended
		}
		look := func(when string) {
			t.Helper()
			got := history(t, e, "q")
			for i, w := range want {
				if g := got[len(got)-1-i]; len(got) != len(want) || !reflect.DeepEqual(g, w) {
					t.Fatalf("%s: %d are listed, want %d; got %+.200v\nwant %+.200v", when, len(got), len(want), g, w)
				}
				for _, ref := range []engine.Ref{{Queue: "q", ID: w.ID}, {Queue: "q", Key: w.Key}} {
					if ref.ID == 0 && ref.Key == "" {
						continue
					}
					if g, err := e.Get(t.Context(), ref); err != nil || !reflect.DeepEqual(g, w) {
						t.Fatalf("%s: %+v: %v, got %+.200v\nwant %+.200v", when, ref, err, g, w)
					}
				}
			}
			if err := e.Sound(); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
		}
		look("acked")
		for _, when := range []string{"flushed", "again"} {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			look(when)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
			look("opened " + when)
		}
		for n := range 5 { // with the key of one before
			if err := pushAll(t, e, message("q", "key-5", 0)); err != nil {
				t.Fatal(err)
			}
			settle(t, e, lease(t, e, "q", 1), engine.Ack)
			time.Sleep(time.Second)
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			i, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "key-5"})
			if all := history(t, e, "q"); err != nil || len(all) != len(want)+n+1 || i.ID != all[0].ID {
				t.Fatal(err, len(all), i.ID)
			}
		}
		if err := e.Merge(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		lease(t, e, "q", 1)
		if q, err := e.Queue(t.Context(), "q"); err != nil || q.History != 0 || len(history(t, e, "q")) != 0 {
			t.Fatalf("after an hour: %v, %+v", err, q)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHistoryDropsTheOldest keeps a number of finished messages, in memtables and sstables: the newest stay, also
// when the store is opened again.
func TestHistoryDropsTheOldest(t *testing.T) {
	for name, tune := range map[string]diskengine.Tune{"flushed": small, "recent": {SegmentBytes: 1 << 20}} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { dropsTheOldest(t, tune) }) })
	}
}

func dropsTheOldest(t *testing.T, tune diskengine.Tune) {
	const most = 20
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, History: engine.History{Keep: time.Hour, Max: most}}, tune}
	e := p.open(t)
	var ended []engine.ID
	for round := range 20 {
		for k := range 30 {
			time.Sleep(time.Millisecond)
			if err := pushAll(t, e, message("q", fmt.Sprint(k), 0)); err != nil {
				t.Fatal(err)
			}
			l := lease(t, e, "q", 1)
			settle(t, e, l, engine.Ack)
			ended = append(ended, l[0].ID)
			q, err := e.Queue(t.Context(), "q")
			if want := min(most, int64(len(ended))); err != nil || q.History != want {
				t.Fatalf("after %d: %v, %d are counted", len(ended), err, q.History)
			}
		}
		if round%3 > 0 {
			if err := e.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if round%5 == 4 { // some are in the log alone
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = p.open(t)
		}
		got := history(t, e, "q")
		for i, g := range got {
			if g.ID != ended[len(ended)-1-i] {
				t.Fatalf("round %d: %d of %d is %d", round, i, len(got), g.ID)
			}
		}
		if len(got) != min(most, len(ended)) {
			t.Fatalf("round %d: %d are listed", round, len(got))
		}
	}
	if err := e.CatchUp(); err != nil {
		t.Fatal(err)
	}
	if err := e.Sound(); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Purge(t.Context(), "q", engine.PurgeFinished); err != nil || n != most || len(history(t, e, "q")) != 0 {
		t.Fatal(n, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHistoryWhileSpaceIsShort has messages end while pushes are refused: they are not listed, which is told
// once, and others are once there is space.
func TestHistoryWhileSpaceIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := disktest.New(nil), new(bytes.Buffer)
		cfg := diskengine.Config{Logger: slog.New(slog.NewTextHandler(log, nil)), MinFreeBytes: 1 << 20, History: engine.History{Keep: time.Hour}}
		e := place{d, "data", cfg, diskengine.Tune{SegmentBytes: 64 << 10}}.open(t)
		for i := range 10 {
			if err := pushAll(t, e, message("q", fmt.Sprint(i), 0)); err != nil {
				t.Fatal(err)
			}
		}
		ack := func() { t.Helper(); settle(t, e, lease(t, e, "q", 2), engine.Ack) }
		ack()
		d.SetSpace(d.Used() + 1<<19)
		time.Sleep(2 * time.Second)
		ack()
		ack()
		if n := strings.Count(log.String(), "finished messages are not listed"); n != 1 || len(history(t, e, "q")) != 2 {
			t.Errorf("%d are listed; the log says:\n%s", len(history(t, e, "q")), log)
		}
		d.SetSpace(0)
		time.Sleep(2 * time.Second)
		ack()
		if n := len(history(t, e, "q")); n != 4 {
			t.Errorf("%d are listed", n)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
