package diskengine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func TestTidyClosesIdleIterators(t *testing.T) {
	e, _ := openMem(t)
	pushAll(t, e, []engine.Message{waiting("k", time.Hour)})
	q := e.queue("q")
	open := func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.names.it != nil
	}
	e.tidy()
	if !open() {
		t.Fatal("an iterator just used is closed")
	}
	pushAll(t, e, []engine.Message{waiting("l", time.Hour)})
	e.tidy()
	if !open() {
		t.Fatal("an iterator used since the last round is closed")
	}
	e.tidy()
	if open() {
		t.Fatal("an iterator that nobody needs stays open")
	}
	if r, err := e.Push(t.Context(), []engine.Message{waiting("k", time.Hour)}); err != nil || !errors.Is(r[0].Err, engine.ErrExists) {
		t.Errorf("push of a held key afterwards: %v, %v", r, err)
	}
}

// entries counts what the disk holds of a queue, beside its name.
func entries(t *testing.T, e *Engine, num uint32) (n int) {
	t.Helper()
	for _, kind := range []byte{kindBody, kindCounts, kindDue, kindMinute, kindKey, kindLease, kindMessage, kindPause, kindMark, kindDead, kindDeadName, kindFinished, kindForget, kindSettings} {
		head := appendHead(nil, kind, num)
		if err := scan(e.store.db, head, upperBound(head), func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestEmptyQueuesAreForgotten empties one queue and leaves something in others, each
// in its way: only the empty one is forgotten, on disk too, and its number is not
// used again.
func TestEmptyQueuesAreForgotten(t *testing.T) {
	clock := enginetest.NewClock()
	cfg := &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog, MinFreeBytes: -1}
	e, err := Open("data", cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	push := func(queue string) engine.PushResult {
		m := waiting("k", 0)
		m.Queue = queue
		r, err := e.Push(t.Context(), []engine.Message{m})
		if err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
		return r[0]
	}
	lease := func(queue string) engine.Lease {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: 1, Remote: true}})
		if err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(err, g)
		}
		return g.Queues[0].Messages[0]
	}
	settle := func(queue string, do engine.Action) {
		r, err := e.Settle(t.Context(), []engine.Settlement{{Token: lease(queue).Token, Do: do}})
		if err := errors.Join(err, r[0].Err); err != nil {
			t.Fatal(err)
		}
	}
	for _, queue := range []string{"acked", "waiting", "leased", "dead", "paused", "damaged", "last"} {
		push(queue)
	}
	settle("acked", engine.Ack)
	lease("leased")
	settle("dead", engine.Bury)
	settle("paused", engine.Ack)
	settle("last", engine.Ack)
	if err := e.Pause(t.Context(), "paused", 0); err != nil {
		t.Fatal(err)
	}
	damaged := e.queue("damaged")
	settle("damaged", engine.Ack)
	if err := e.store.db.Set(idKey(nil, kindMessage, damaged.num, 1<<40), []byte{0}, nil); err != nil {
		t.Fatal(err)
	}
	acked, last := e.queue("acked"), e.queue("last")
	for n := range forgetAfter + 1 {
		if e.queue("acked") == nil {
			t.Fatalf("forgotten after %d rounds", n)
		}
		if _, _, err := e.Queues(t.Context(), "", 10); err != nil { // who only looks does not keep it
			t.Fatal(err)
		}
		e.tidy()
	}
	e.tidy()
	for _, queue := range []string{"waiting", "leased", "dead", "paused", "damaged", "last"} {
		if e.queue(queue) == nil {
			t.Errorf("%s is forgotten", queue)
		}
	}
	if n := entries(t, e, acked.num); e.queue("acked") != nil || e.byNumber[acked.num] != nil || n > 0 {
		t.Fatalf("the empty queue is there: %v, with %d entries on disk", e.queue("acked"), n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e, err = Open("data", cfg); err != nil {
		t.Fatal(err)
	}
	if e.queue("acked") != nil || e.queue("waiting") == nil {
		t.Error("opening again finds other queues")
	}
	push("acked")
	if q := e.queue("acked"); q.num <= last.num {
		t.Errorf("number %d after %d", q.num, last.num)
	}
	sound(t, e.queue("acked"))
}

// TestForgettingLosesNothing forgets queues as often as that can be while others
// push, lease, settle, pause and look at them: each message comes once.
func TestForgettingLosesNothing(t *testing.T) {
	e, _ := openMem(t)
	const each, names = 300, 3
	name := func(i int) string { return fmt.Sprint("q", i%names) }
	var acked, forgotten atomic.Int64
	done := make(chan struct{})
	var callers, sweeper sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, q := range e.queues() {
				if err := e.forget(q); err != nil {
					t.Error(err)
				}
				q.mu.Lock()
				if q.gone {
					forgotten.Add(1)
				}
				q.mu.Unlock()
			}
			if _, err := e.makeQueue(fmt.Sprint("z", forgotten.Load())); err != nil { // the last one stays
				t.Error(err)
			}
		}
	})
	for g := range 3 {
		callers.Go(func() {
			for i := range each {
				queue := name(g + i)
				m := waiting(fmt.Sprint(g, " ", i), 0)
				m.Queue = queue
				call := e.Push
				if i%3 == 0 {
					call = e.PushAtomic
				}
				r, err := call(t.Context(), []engine.Message{m})
				if err != nil || r[0].Err != nil {
					t.Error(err, r)
					return
				}
				if _, err := e.Get(t.Context(), engine.Ref{Queue: queue, ID: r[0].ID}); err != nil && !errors.Is(err, engine.ErrNotFound) {
					t.Error(err)
				}
				gr, err := e.Lease(t.Context(), []engine.Want{{Queue: queue, Max: 2, Remote: true}})
				if err != nil || gr.Queues[0].Err != nil {
					t.Error(err, gr)
					return
				}
				for _, l := range gr.Queues[0].Messages {
					s, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: engine.Ack}})
					if err := errors.Join(err, s[0].Err); err != nil {
						t.Error(err)
						return
					}
					acked.Add(1)
				}
			}
		})
	}
	callers.Wait()
	close(done)
	sweeper.Wait()
	for i := range names {
		if q := e.queue(name(i)); q != nil {
			sound(t, q)
		}
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: name(i), Max: 3 * each}})
		if err != nil {
			t.Fatal(err)
		}
		acked.Add(int64(len(g.Queues[0].Messages)))
	}
	if n := acked.Load(); n != 3*each {
		t.Errorf("%d messages came of %d", n, 3*each)
	}
	if forgotten.Load() == 0 {
		t.Error("no queue was forgotten meanwhile")
	}
}
