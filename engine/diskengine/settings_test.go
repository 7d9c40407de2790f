package diskengine

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// buryAll leases what is due and buries it.
func buryAll(t *testing.T, e *Engine) (n int) {
	t.Helper()
	for {
		g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1000, Remote: true}})
		if err != nil {
			t.Fatal(err)
		}
		var s []engine.Settlement
		for _, l := range g.Queues[0].Messages {
			s = append(s, engine.Settlement{Token: l.Token, Do: engine.Bury})
		}
		if _, err := e.Settle(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if n += len(s); len(s) == 0 {
			return n
		}
	}
}

func crowd(n int) []engine.Message {
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = waiting(fmt.Sprint(i), 0)
		msgs[i].Body = make([]byte, 1+i%2*inlineBody)
	}
	return msgs
}

func configure(t *testing.T, e *Engine, s engine.Settings) string {
	t.Helper()
	revision, err := e.Configure(t.Context(), "q", s, "")
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestDeadOfAQuietQueueAreDropped leaves a queue alone when its dead have been dead for
// long enough: the loader drops them with all that belongs to them.
func TestDeadOfAQuietQueueAreDropped(t *testing.T) {
	e, clock := openMem(t)
	const n = 3*dropChunk + 5
	configure(t, e, engine.Settings{DeadKeep: time.Hour})
	pushAll(t, e, crowd(n))
	if got := buryAll(t, e); got != n {
		t.Fatalf("buried %d", got)
	}
	q := e.queue("q")
	clock.Advance(time.Hour)
	e.tidy()
	if d, err := e.Queue(t.Context(), "q"); err != nil || d.Dead != n {
		t.Fatalf("%v, %+v", err, d)
	}
	clock.Advance(time.Millisecond)
	if p, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 10}); err != nil || len(p.Messages) > 0 {
		t.Errorf("%v, %d listed", err, len(p.Messages))
	}
	e.tidy()
	for rounds := 0; stored(t, q, kindDead) > 0; rounds++ {
		e.lookAfter(q)
		if rounds > n {
			t.Fatal("they are not dropped")
		}
	}
	sound(t, q)
	for _, kind := range []byte{kindMessage, kindBody, kindDeadName} {
		if n := stored(t, q, kind); n > 0 {
			t.Errorf("%d entries of kind %c are left", n, kind)
		}
	}
	for range forgetAfter + 2 {
		e.tidy()
	}
	if e.queue("q") != q {
		t.Error("a queue with settings was forgotten")
	}
}

// TestDeadMaxOfAGreatCrowd lowers how many dead there may be: all that are more are
// gone when it answers, those that died first.
func TestDeadMaxOfAGreatCrowd(t *testing.T) {
	e, _ := openMem(t)
	const n = 20*dropChunk + 5
	ids := pushAll(t, e, crowd(n))
	buryAll(t, e)
	configure(t, e, engine.Settings{DeadMax: 3})
	sound(t, e.queue("q"))
	d, err := e.Queue(t.Context(), "q")
	if err != nil || d.Dead != 3 || stored(t, e.queue("q"), kindMessage) != 3 {
		t.Fatalf("%v, %+v", err, d)
	}
	p, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Dead, Limit: 10})
	if err != nil || len(p.Messages) != 3 || p.Messages[0].ID != ids[n-3] {
		t.Fatalf("%v, %+v", err, p)
	}
	pushAll(t, e, crowd(2*dropChunk)) // all of these die in one call
	buryAll(t, e)
	if _, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 1}}); err != nil {
		t.Fatal(err)
	}
	q := e.queue("q")
	for rounds := 0; stored(t, q, kindDead) > 3; rounds++ {
		if e.lookAfter(q); rounds > n {
			t.Fatal("they are not dropped")
		}
	}
	sound(t, q)
}

// TestSettingsAreKept closes and opens a queue that holds nothing but settings.
func TestSettingsAreKept(t *testing.T) {
	clock := enginetest.NewClock()
	cfg := &Config{FS: vfs.NewMem(), Now: clock.Now, Logger: quietLog, MinFreeBytes: -1}
	e, err := Open("data", cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := fullRules().Settings
	if first := configure(t, e, want); first == unwritten {
		t.Error("the first revision is", first)
	}
	before := configure(t, e, want)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if e, err = Open("data", cfg); err != nil {
			t.Fatal(err)
		}
		s, revision, err := e.Settings(t.Context(), "q")
		if err != nil || revision != before || !reflect.DeepEqual(s, want) {
			t.Fatalf("%v, %+v at %s, want %s", err, s, revision, before)
		}
		*s.Defaults.Priority = 9 // the caller's own
		if _, err := e.Configure(t.Context(), "q", s, unwritten); !errors.Is(err, engine.ErrStale) {
			t.Errorf("configured over another revision: %v", err)
		}
	}
	if page, _, err := e.Queues(t.Context(), "", 10); err != nil || len(page) != 1 {
		t.Errorf("listed %+v, %v", page, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPlainQueuesHaveNoRules uses queues in every way but one: what settings need is not
// there.
func TestPlainQueuesHaveNoRules(t *testing.T) {
	e, _ := openMem(t)
	pushAll(t, e, []engine.Message{waiting("a", 0), fleeting("b", 0, time.Hour)})
	ackAll(t, e)
	if _, _, err := e.Settings(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	if q := e.queue("q"); q.rules != nil {
		t.Errorf("%+v", q.rules)
	}
}

// TestDeadMaxWithinACall buries in one call what drops the message that the next item
// of the call is about.
func TestDeadMaxWithinACall(t *testing.T) {
	e, clock := openMem(t)
	configure(t, e, engine.Settings{DeadMax: 1})
	first, second := waiting("first", 0), waiting("second", 0)
	first.MaxAttempts, first.TTR, second.TTR = 1, time.Second, time.Hour
	ids := pushAll(t, e, []engine.Message{first, second})
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 2 {
		t.Fatal(err, g)
	}
	clock.Advance(time.Minute) // the first is dead
	l := g.Queues[0].Messages
	s, err := e.Settle(t.Context(), []engine.Settlement{{Token: l[1].Token, Do: engine.Bury}, {Token: l[0].Token, Do: engine.Extend}})
	if err != nil || s[0].Err != nil || !errors.Is(s[1].Err, engine.ErrLeaseLost) {
		t.Fatalf("%v, %+v", err, s)
	}
	if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: ids[0]}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("the first to die: %v", err)
	}
	sound(t, e.queue("q"))
}

// TestSettingsOfAQueueThatIsForgotten has a queue be forgotten, as far as others can tell,
// while Configure is at it: the settings are those of the queue made anew, and where none
// can be made Configure fails.
func TestSettingsOfAQueueThatIsForgotten(t *testing.T) {
	for name, stopped := range map[string]bool{"made anew": false, "the disk fails": true} {
		t.Run(name, func(t *testing.T) {
			clock := enginetest.NewClock()
			var locked atomic.Pointer[queue] // is forgotten when its time is asked for under its lock
			e, err := Open("data", &Config{FS: vfs.NewMem(), Logger: quietLog, MinFreeBytes: -1, Now: func() time.Time {
				if q := locked.Load(); q != nil && !q.mu.TryLock() {
					locked.Store(nil)
					q.gone = true
					q.e.queuesMu.Lock()
					delete(q.e.byName, q.name)
					q.e.queuesMu.Unlock()
					if stopped {
						_ = q.e.store.fail(syscall.EIO)
					}
				} else if q != nil {
					q.mu.Unlock()
				}
				return clock.Now()
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Close() }()
			pushAll(t, e, []engine.Message{waiting("k", 0)})
			clock.Advance(-time.Second) // a call asks for the time again
			locked.Store(e.queue("q"))
			_, err = e.Configure(t.Context(), "q", engine.Settings{MaxPending: 1}, unwritten)
			if locked.Load() != nil {
				t.Fatal("the queue was not forgotten")
			}
			if s, _, _ := e.Settings(t.Context(), "q"); stopped && !errors.Is(err, syscall.EIO) || !stopped && (err != nil || s.MaxPending != 1) {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// TestLapsedLeasesTakeNoPlace has more leases be over than are ended at once: none of them
// is in flight, in a lower limit neither.
func TestLapsedLeasesTakeNoPlace(t *testing.T) {
	e, clock := openMem(t)
	const n = 3 * lapseChunk
	pushAll(t, e, crowd(n))
	if g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n, TTR: time.Minute, Remote: true}}); err != nil || len(g.Queues[0].Messages) != n {
		t.Fatal(err)
	}
	configure(t, e, engine.Settings{InFlight: 1})
	if _, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "0"}, engine.Want{}); !errors.Is(err, engine.ErrLeased) {
		t.Errorf("while they last: %v", err)
	}
	clock.Advance(time.Minute)
	if _, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(n - 1)}, engine.Want{}); err != nil {
		t.Error(err)
	}
	if _, err := e.Claim(t.Context(), engine.Ref{Queue: "q", Key: "0"}, engine.Want{}); !errors.Is(err, engine.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	if g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: n}}); err != nil || len(g.Queues[0].Messages) != 0 || !g.Queues[0].Held {
		t.Errorf("%+v, %v", g.Queues[0], err)
	}
	sound(t, e.queue("q"))
}

// TestLittleIsDroppedAtOnce has many dead and many memories be over: while others wait for
// the lock, no more than a chunk of each goes.
func TestLittleIsDroppedAtOnce(t *testing.T) {
	e, clock := openMem(t)
	const n = 3 * dropChunk
	configure(t, e, engine.Settings{DeadKeep: time.Hour})
	pushAll(t, e, crowd(n))
	buryAll(t, e)
	finish := crowd(n)
	for i := range finish {
		finish[i].Remember = time.Hour
	}
	pushAll(t, e, finish)
	ackAll(t, e)
	clock.Advance(2 * time.Hour)
	q, p := e.queue("q"), pending{store: e.store}
	q.mu.Lock()
	before := q.counts
	some, err := q.drop(e.now(), &p)
	after := q.counts
	q.mu.Unlock()
	if err := errors.Join(err, p.wait()); err != nil || !some {
		t.Fatal(some, err)
	}
	if dead, finished := before.dead-after.dead, before.finished-after.finished; dead != dropChunk || finished != dropChunk {
		t.Errorf("%d of %d dead and %d of %d memories were dropped", dead, before.dead, finished, before.finished)
	}
	sound(t, q)
}
