package diskengine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func openMem(t *testing.T) (*Engine, *enginetest.Clock) {
	t.Helper()
	clock := enginetest.NewClock()
	e, err := Open("data", &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, clock
}

func waiting(key string, in time.Duration) engine.Message {
	return engine.Message{
		Queue: "q", Key: key, Due: engine.When{In: in},
		Content: engine.Content{Body: []byte(key)}, Terms: engine.Terms{MaxAttempts: 20, TTR: time.Hour},
	}
}

func pushAll(t *testing.T, e *Engine, msgs []engine.Message) (ids []engine.ID) {
	t.Helper()
	for _, r := range enginetest.MustPush(t, e, msgs...) {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestDamagedRecordStopsNoOther spoils the record of one message among others, one
// way after the other: the others come, the spoilt one does not and can be
// cancelled by its id.
func TestDamagedRecordStopsNoOther(t *testing.T) {
	for name, spoil := range map[string]func(key []byte, db *pebble.DB) error{
		"cut short": func(key []byte, db *pebble.DB) error { return db.Set(key, []byte{recordVersion}, pebble.Sync) },
		"another version": func(key []byte, db *pebble.DB) error {
			return db.Set(key, []byte{recordVersion + 1, 0, 0, 0}, pebble.Sync)
		},
		"missing": func(key []byte, db *pebble.DB) error { return db.Delete(key, pebble.Sync) },
	} {
		for _, most := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, leased by %d", name, most), func(t *testing.T) {
				e, clock := openMem(t)
				var msgs []engine.Message
				for i := range 5 {
					msgs = append(msgs, waiting(fmt.Sprint(i), time.Second))
				}
				ids := pushAll(t, e, msgs)
				q := e.queue("q")
				if err := spoil(idKey(nil, kindMessage, q.num, ids[2]), e.store.db); err != nil {
					t.Fatal(err)
				}
				clock.Advance(time.Second)
				var got []engine.ID
				for range 10 {
					g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: most}})
					if err != nil || g.Queues[0].Err != nil {
						t.Fatal(err, g.Queues)
					}
					for _, l := range g.Queues[0].Messages {
						got = append(got, l.ID)
					}
				}
				if want := slices.Delete(slices.Clone(ids), 2, 3); !slices.Equal(got, want) {
					t.Errorf("leased %v, want %v", got, want)
				}
				errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: ids[2]}})
				if err != nil || errs[0] != nil && !errors.Is(errs[0], engine.ErrNotFound) {
					t.Errorf("cancel: %v, %v", errs, err)
				}
				if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: ids[2]}); !errors.Is(err, engine.ErrNotFound) {
					t.Errorf("get after the cancel: %v", err)
				}
			})
		}
	}
}

// TestMissingBody takes a large body away from its message.
func TestMissingBody(t *testing.T) {
	e, clock := openMem(t)
	big := waiting("big", time.Second)
	big.Body = make([]byte, 4*inlineBody)
	ids := pushAll(t, e, []engine.Message{big, waiting("small", time.Second)})
	if err := e.store.db.Delete(idKey(nil, kindBody, e.queue("q").num, ids[0]), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 10}})
	if err != nil || len(g.Queues[0].Messages) != 1 || g.Queues[0].Messages[0].ID != ids[1] {
		t.Fatalf("%v, %+v", err, g.Queues)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: ids[0]}); !errors.Is(err, errNoBody) {
		t.Errorf("get: %v", err)
	}
}

// TestMarkMovesWithinOneInstant takes out much of what is due in one instant: the
// mark must pass it, or its tombstones are walked again and again.
func TestMarkMovesWithinOneInstant(t *testing.T) {
	e, clock := openMem(t)
	const n = 3 * markAfter
	var ids []engine.ID
	for from := 0; from < n; from += 1000 {
		var msgs []engine.Message
		for i := from; i < min(n, from+1000); i++ {
			msgs = append(msgs, engine.Message{Queue: "q", Due: engine.When{At: clock.Now().Add(time.Second)}, Terms: engine.Terms{MaxAttempts: 1, TTR: time.Hour}})
		}
		ids = append(ids, pushAll(t, e, msgs)...)
	}
	clock.Advance(time.Second)
	for taken := 0; taken < n-10; {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: min(1000, n-10-taken)}})
		if err != nil {
			t.Fatal(err)
		}
		taken += len(g.Queues[0].Messages)
	}
	q := e.queue("q")
	if err := q.raiseMark(); err != nil {
		t.Fatal(err)
	}
	if want := (position{clock.Now().UnixMilli(), ids[n-10]}); q.mark != want {
		t.Errorf("the mark is at %v, want %v", q.mark, want)
	}
}

// buried is an engine with three dead messages, the second of them damaged.
func buried(t *testing.T) (*Engine, []engine.ID) {
	e, _ := openMem(t)
	ctx := t.Context()
	ids := pushAll(t, e, []engine.Message{waiting("a", 0), waiting("b", 0), waiting("c", 0)})
	g, err := e.Lease(ctx, []engine.Want{{Queue: "q", Max: 3, Remote: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range g.Queues[0].Messages {
		r, err := e.Settle(ctx, []engine.Settlement{{Token: l.Token, Do: engine.Bury}})
		if err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
	if err := e.store.db.Set(idKey(nil, kindMessage, e.queue("q").num, ids[1]), []byte{recordVersion}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	return e, ids
}

// TestDamagedGraveStopsNoOther purges and redrives dead messages one of which cannot
// be read.
func TestDamagedGraveStopsNoOther(t *testing.T) {
	for name, redrive := range map[string]bool{"redriven": false, "redriven by id": true} {
		t.Run(name, func(t *testing.T) {
			e, ids := buried(t)
			if !redrive {
				ids = nil
			}
			r, err := e.Redrive(t.Context(), "q", ids, 0)
			if want := (engine.Redriven{Redriven: 2, Skipped: 1}); err != nil || r != want {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	for name, cancelled := range map[string]bool{"purged": false, "cancelled by id, purged": true} {
		t.Run(name, func(t *testing.T) {
			e, ids := buried(t)
			want := int64(3)
			if cancelled {
				want = 2
				if errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: ids[1]}}); err != nil || errs[0] != nil {
					t.Fatal(err, errs)
				}
			}
			if n, err := e.Purge(t.Context(), "q", engine.PurgeDead); err != nil || n != want {
				t.Errorf("purged %d, %v", n, err)
			}
			if info, err := e.Queue(t.Context(), "q"); err != nil || info.Dead != 0 {
				t.Errorf("%+v, %v", info, err)
			}
		})
	}
}

// TestReadErrorWhileLookingForALostKey lets each read of a Cancel fail in turn that is about
// a damaged message and about another: at most one of them fails, and what failed is as it
// was and can be repeated.
func TestReadErrorWhileLookingForALostKey(t *testing.T) {
	var ids []engine.ID
	var results []error
	failed := 0
	refs := func() []engine.Ref { return []engine.Ref{{Queue: "q", ID: ids[1]}, {Queue: "q", Key: "3"}} }
	newScene(t, func(d *coldDisk) {
		ids = pushFew(d, 10)
		if err := d.store.db.Set(idKey(nil, kindMessage, d.queue("q").num, ids[1]), []byte{recordVersion}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}).eachRead(t,
		func(d *coldDisk) (err error) {
			if results, err = d.Cancel(t.Context(), refs()); err != nil {
				t.Fatalf("the whole call: %v", err)
			}
			return errors.Join(results...)
		},
		func(t *testing.T, d *coldDisk, _ bool) {
			if results[0] != nil {
				failed++
				if results[1] != nil {
					t.Errorf("both failed: %v", results)
				}
			}
			for i, ref := range refs() {
				errs, err := d.Cancel(t.Context(), []engine.Ref{ref})
				if is := errors.Is(errs[0], engine.ErrNotFound); err != nil || is != (results[i] == nil) || !is && errs[0] != nil {
					t.Errorf("%+v, which gave %v, again: %v, %v", ref, results[i], errs[0], err)
				}
			}
			m := waiting("1", time.Hour)
			m.OnConflict = engine.Keep
			if r, err := d.Push(t.Context(), []engine.Message{m}); err != nil || r[0].Outcome != engine.Created {
				t.Errorf("push of its key: %+v, %v", r, err)
			}
			sound(t, d.queue("q"))
		})
	if failed == 0 {
		t.Error("no read failed that was about the damaged one")
	}
}

// TestLostMessageFreesItsKey is rid of a damaged message in each way: its key is free
// again, and the counts are right.
func TestLostMessageFreesItsKey(t *testing.T) {
	cancel := func(t *testing.T, e *Engine, id engine.ID) error {
		errs, err := e.Cancel(t.Context(), []engine.Ref{{Queue: "q", ID: id}})
		return errors.Join(err, errs[0])
	}
	for name, end := range map[string]func(t *testing.T, e *Engine, clock *enginetest.Clock, id engine.ID) error{
		"cancelled": func(t *testing.T, e *Engine, _ *enginetest.Clock, id engine.ID) error { return cancel(t, e, id) },
		"purged": func(t *testing.T, e *Engine, _ *enginetest.Clock, _ engine.ID) error {
			_, err := e.Purge(t.Context(), "q", 0)
			return err
		},
		"passed over, cancelled": func(t *testing.T, e *Engine, clock *enginetest.Clock, id engine.ID) error {
			clock.Advance(time.Second)
			if _, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 5}}); err != nil {
				return err
			}
			return cancel(t, e, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, clock := openMem(t)
			ids := pushAll(t, e, []engine.Message{waiting("k", time.Second)})
			q := e.queue("q")
			if err := e.store.db.Set(idKey(nil, kindMessage, q.num, ids[0]), []byte{recordVersion}, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			if err := end(t, e, clock, ids[0]); err != nil {
				t.Fatal(err)
			}
			sound(t, q)
			m := waiting("k", time.Hour)
			m.OnConflict = engine.Keep
			if r, err := e.Push(t.Context(), []engine.Message{m}); err != nil || r[0].Outcome != engine.Created {
				t.Errorf("push of its key: %+v, %v", r, err)
			}
			sound(t, q)
		})
	}
}
