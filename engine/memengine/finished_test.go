package memengine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// leaveKeys has a queue remember n keys, pushed and cancelled, for an hour.
func leaveKeys(t *testing.T, e *Engine, queue string, n int) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		var msgs []engine.Message
		var refs []engine.Ref
		for i := from; i < min(n, from+1000); i++ {
			m := msg(queue, fmt.Sprintf("order-%014d", i), time.Minute)
			m.Remember = time.Hour
			msgs, refs = append(msgs, m), append(refs, engine.Ref{Queue: queue, Key: m.Key})
		}
		push(t, e, msgs...)
		cancel(t, e, refs...)
	}
}

func cancel(t *testing.T, e *Engine, refs ...engine.Ref) {
	t.Helper()
	errs, err := e.Cancel(t.Context(), refs)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
}

// A remembered key of 20 bytes takes at most 200 bytes, whatever its message took.
func TestHeapPerRememberedKey(t *testing.T) {
	const n = 100_000
	before := heapNow()
	e, _ := newEngine(t)
	leaveKeys(t, e, "q", n)
	each := (heapNow() - before) / n
	t.Logf("%d bytes each", each)
	if each > 200 {
		t.Errorf("a remembered key takes %d bytes, want at most 200", each)
	}
	if info, err := e.Queue(t.Context(), "q"); err != nil || info.Finished != n {
		t.Errorf("%+v, %v", info, err)
	}
}

// However many keys are free again, one call drops some of them, and all are free for
// whoever looks.
func TestForgettingIsBounded(t *testing.T) {
	const n = 3*dropChunk + 7
	e, c := newEngine(t)
	leaveKeys(t, e, "q", n)
	c.Advance(time.Hour)
	last := engine.Ref{Queue: "q", Key: fmt.Sprintf("order-%014d", n-1)}
	if _, err := e.Get(t.Context(), last); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a key that is free is found: %v", err)
	}
	q := e.queues["q"]
	if q.finished.n != n-dropChunk {
		t.Errorf("%d are left, want %d", q.finished.n, n-dropChunk)
	}
	if m, err := e.Purge(t.Context(), "q", engine.PurgeFinished); err != nil || m != 0 {
		t.Errorf("%d were purged, %v", m, err)
	}
	atomic := []engine.Message{msg("q", last.Key, time.Minute)}
	if r, err := e.PushAtomic(t.Context(), atomic); err != nil || r[0].Outcome != engine.Created {
		t.Errorf("%+v, %v", r, err)
	}
	cancel(t, e, last)
	for range 3 {
		lease(t, e, "q", 1)
	}
	if q.finished != nil || q.msgs.n != 0 || q.keys.n != 0 {
		t.Errorf("%+v, %d places, %d keys", q.finished, q.msgs.n, q.keys.n)
	}
}

// Queues that nobody looks at go when their keys are free.
func TestQueuesOfFreeKeysAreForgotten(t *testing.T) {
	e, c := newEngine(t)
	leaveKeys(t, e, "keeps", 1)
	c.Advance(time.Hour / 2)
	for i := range tidyLeast - 2 {
		leaveKeys(t, e, fmt.Sprint("q", i), 1)
		if i == tidyLeast/2 {
			c.Advance(time.Hour)
		}
	}
	leaveKeys(t, e, "one", 1)
	leaveKeys(t, e, "more", 1)
	if n, want := len(e.queues), tidyLeast/2; n > want || e.queues["keeps"] != nil {
		t.Errorf("%d queues, want at most %d", n, want)
	}
}

// What an atomic push finds remembered is what it meets, also when its own messages
// expire at once.
func TestPushAtomicOfRememberedKeys(t *testing.T) {
	e, c := newEngine(t)
	leaveKeys(t, e, "q", 1)
	key := "order-00000000000000"
	old := msg("q", "old", 0)
	old.Due, old.ExpireAfter, old.Remember = engine.When{At: c.Now().Add(-time.Minute)}, time.Second, time.Hour
	refused := []engine.Message{msg("q", "new", 0), msg("q", key, 0)}
	if r, err := e.PushAtomic(t.Context(), refused); !errors.Is(err, engine.ErrExists) || r[1].State != engine.Finished || r[1].Ending != engine.Cancelled {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := e.PushAtomic(t.Context(), []engine.Message{old, old}); !errors.Is(err, engine.ErrExists) {
		t.Errorf("an expired one is remembered: %+v, %v", r, err)
	}
	again := old
	again.OnConflict = engine.Keep
	anew := msg("q", key, 0)
	anew.OnConflict = engine.Rearm
	r, err := e.PushAtomic(t.Context(), []engine.Message{old, again, anew})
	if err != nil || r[0].Outcome != engine.Created || r[1].Outcome != engine.Kept || r[1].ID != r[0].ID || r[1].Ending != engine.Expired || r[2].Outcome != engine.Created {
		t.Errorf("%+v, %v", r, err)
	}
}
