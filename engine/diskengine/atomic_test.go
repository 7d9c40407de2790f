package diskengine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// The messages of an atomic push: three slices of who is new, and some that fold.
const atomics = 600

// amidst is an engine in which something is done in the midst of an atomic push of keys 0, 1 and so on of
// queue q, due at once.
type amidst struct {
	*testing.T
	*diskengine.Engine
	place
	disk *disktest.Disk
	at   map[string]func(n int) // what is done the nth time that it comes by
}

func newAmidst(t *testing.T) *amidst {
	a := &amidst{T: t, disk: disktest.New(nil), at: make(map[string]func(int))}
	came := make(map[string]int)
	a.place = place{a.disk, "data", diskengine.Config{Logger: quiet, RetryFor: -1, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 128 << 10, OnHeap: true}}
	a.tune.Between = func(where string) {
		if where != "atomic" && where != "fold" { // which only the push comes by
			return
		}
		came[where]++
		if do := a.at[where]; do != nil {
			do(came[where])
		}
	}
	a.Engine = a.place.open(t)
	t.Cleanup(func() {
		if err := a.Close(); err != nil && !strings.Contains(err.Error(), "stopped") {
			t.Error(err)
		}
	})
	return a
}

// once has something done at one time.
func (a *amidst) once(where string, n int, do func()) {
	a.at[where] = func(i int) {
		if i == n {
			do()
		}
	}
}

func atomicMessages(change func(m *engine.Message, i int)) []engine.Message {
	msgs := make([]engine.Message, atomics)
	for i := range msgs {
		if msgs[i] = message("q", fmt.Sprint(i), 0); change != nil {
			change(&msgs[i], i)
		}
	}
	return msgs
}

// push pushes them, and returns the error.
func (a *amidst) push() error {
	r, err := a.PushAtomic(a.Context(), atomicMessages(nil))
	if err == nil {
		for i := range r {
			if r[i].Err != nil || r[i].Outcome != engine.Created || i > 0 && r[i].ID <= r[i-1].ID {
				a.Fatalf("%d: %+v behind %+v", i, r[i], r[max(0, i-1)])
			}
		}
	}
	return err
}

// has says how many messages there are by count, by list and by key; all the same.
func (a *amidst) has(want int) {
	a.Helper()
	holdsReady(a.T, a.Engine, want)
	_, err := a.Get(a.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(atomics - 1)})
	if found := err == nil; found != (want >= atomics-1) {
		a.Errorf("the last key: %v, with %d messages", err, want)
	}
	if err := a.Sound(); err != nil {
		a.Error(err)
	}
}

func holdsReady(t *testing.T, e *diskengine.Engine, want int) {
	t.Helper()
	i, err := e.Queue(t.Context(), "q")
	if err != nil || i.Ready != int64(want) {
		t.Errorf("%d are counted, not %d: %v", i.Ready, want, err)
	}
	listed, after := 0, ""
	for more := true; more; more = after != "" {
		page, err := e.List(t.Context(), engine.ListQuery{Queue: "q", State: engine.Ready, Limit: 1000, After: after})
		if err != nil {
			t.Fatal(err)
		}
		listed, after = listed+len(page.Messages), page.Next
	}
	if listed != want {
		t.Errorf("%d are listed, not %d", listed, want)
	}
}

// again opens what a killed process, or a loss of power, would have left, and counts.
func (a *amidst) again(left *disktest.Disk, want ...int) {
	a.Helper()
	p := a.place
	p.fs, p.tune.Between = left, nil
	e := p.open(a.T)
	i, err := e.Queue(a.Context(), "q")
	ok := false
	for _, n := range want {
		ok = ok || i.Ready == int64(n)
	}
	if err != nil || !ok {
		a.Errorf("%d are left, want one of %v: %v", i.Ready, want, err)
	}
	holdsReady(a.T, e, int(i.Ready))
	if err := e.Close(); err != nil {
		a.Fatal(err)
	}
}

func (a *amidst) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// TestAmidAnAtomicPush does something at each of the instants at which an atomic push of many lets
// others in: nobody sees some of it, nobody waits for it, and it is there whole or not at all.
func TestAmidAnAtomicPush(t *testing.T) {
	const slices = (atomics + 255) / 256
	ref := func(i int) engine.Ref { return engine.Ref{Queue: "q", Key: fmt.Sprint(i)} }
	cancelled := func(a *amidst, i int) error {
		errs, err := a.Cancel(a.Context(), []engine.Ref{ref(i)})
		a.must(err)
		return errs[0]
	}
	one := func(a *amidst, i int) error { return pushAll(a, a.Engine, message("q", fmt.Sprint(i), 0)) }
	for n := 1; n <= slices+1; n++ { // the last time all is put together, and still to be shown
		for name, do := range map[string]func(t *testing.T, a *amidst){
			"nobody sees it": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() {
					a.has(0)
					if l := lease(t, a.Engine, "q", atomics); len(l) > 0 {
						t.Errorf("%d were leased", len(l))
					}
					if err := cancelled(a, 7); !errors.Is(err, engine.ErrNotFound) {
						t.Errorf("cancelled: %v", err)
					}
				})
				a.must(a.push())
				a.has(atomics)
			},
			"another has a key": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() { a.must(one(a, 7)) })
				if err := a.push(); !errors.Is(err, engine.ErrExists) {
					t.Errorf("pushed: %v", err)
				}
				a.has(1)
			},
			"another one of the same keys": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() { a.must(a.push()) })
				if err := a.push(); !errors.Is(err, engine.ErrExists) {
					t.Errorf("pushed: %v", err)
				}
				a.has(atomics)
			},
			"another had a key": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() { a.must(one(a, 7)); a.must(cancelled(a, 7)) })
				a.must(a.push())
				a.has(atomics)
			},
			"always another had a key": func(t *testing.T, a *amidst) {
				a.at["atomic"] = func(int) { a.must(one(a, 7)); a.must(cancelled(a, 7)) }
				a.must(a.push())
				a.has(atomics)
			},
			"who is to be replaced goes": func(t *testing.T, a *amidst) {
				replaces := func(m *engine.Message, _ int) { m.Remember, m.OnConflict = time.Hour, engine.Replace }
				msgs := atomicMessages(replaces)
				a.must(pushAll(t, a.Engine, msgs[7], msgs[8]))
				a.once("atomic", n, func() {
					a.must(errors.Join(cancelled(a, 7), cancelled(a, 8))) // and the keys are remembered
					a.must(pushAll(t, a.Engine, msgs[8]))
				})
				r, err := a.PushAtomic(a.Context(), msgs)
				a.must(err)
				if r[7].Outcome != engine.Created || r[8].Outcome != engine.Replaced {
					t.Errorf("%+v, %+v", r[7], r[8])
				}
				a.has(atomics)
			},
			"a dead one comes back": func(t *testing.T, a *amidst) {
				a.must(one(a, 7))
				settle(t, a.Engine, lease(t, a.Engine, "q", 1), engine.Bury)
				a.once("atomic", n, func() {
					r, err := a.Redrive(a.Context(), "q", nil, 0)
					if err != nil || r.Redriven != 1 {
						t.Error(r, err)
					}
				})
				if err := a.push(); !errors.Is(err, engine.ErrExists) {
					t.Errorf("pushed: %v", err)
				}
				a.has(1)
			},
			"the key of a dead one is remembered": func(t *testing.T, a *amidst) {
				m := message("q", "7", 0)
				m.MaxAttempts, m.Remember = 1, time.Hour
				a.must(pushAll(t, a.Engine, m))
				g, err := a.Lease(a.Context(), []engine.Want{{Queue: "q", Max: 1, Remote: true, TTR: time.Millisecond}})
				a.must(err)
				await(t, "its lease lapses, which was the last", func() bool {
					i, err := a.Queue(a.Context(), "q")
					return err == nil && i.Dead == 1
				})
				a.once("atomic", n, func() { settle(t, a.Engine, g.Queues[0].Messages, engine.Ack) })
				if err := a.push(); !errors.Is(err, engine.ErrExists) {
					t.Errorf("pushed: %v", err)
				}
				a.has(0)
			},
			"purge": func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("q", "old", 0)))
				a.once("atomic", n, func() {
					if n, err := a.Purge(a.Context(), "q", engine.PurgeDead); n != 1 || err != nil {
						t.Error(n, err)
					}
				})
				a.must(a.push())
				a.has(atomics)
			},
			"a limit": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() {
					_, err := a.Configure(a.Context(), "q", engine.Settings{MaxPending: atomics - 1}, "")
					a.must(err)
				})
				r, err := a.PushAtomic(a.Context(), atomicMessages(nil))
				if !errors.Is(err, engine.ErrLimit) || r[atomics-2].Err != nil || r[atomics-1].Err == nil {
					t.Errorf("pushed: %v", err)
				}
				a.has(0)
			},
			"a purge goes on": func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("q", "old", 0), message("q", "leased", 0)))
				a.must(a.Flush(a.Context()))
				if l := lease(t, a.Engine, "q", 1); len(l) != 1 { // whom the purge spares, so that it reads who is who
					t.Fatal(l)
				}
				begun, read, purged := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				a.once("atomic", n, func() {
					var first atomic.Bool
					a.disk.Hook(func(c disktest.Call) error {
						if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") && first.CompareAndSwap(false, true) {
							close(begun)
							<-read
						}
						return nil
					})
					go func() {
						_, err := a.Purge(context.Background(), "q", 0)
						purged <- err
					}()
					<-begun
				})
				a.must(a.push())
				if got := len(lease(t, a.Engine, "q", 10)); got != 10 {
					t.Errorf("%d are leased beside a purge", got)
				}
				close(read)
				a.must(<-purged)
				holdsReady(t, a.Engine, atomics-10)
				a.must(a.Sound())
			},
			"other defaults": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() {
					_, err := a.Configure(a.Context(), "q", engine.Settings{Defaults: engine.Terms{Priority: new(uint32(7))}}, "")
					a.must(err)
				})
				a.must(a.push())
				if i, err := a.Get(a.Context(), ref(0)); err != nil || i.Priority != 7 {
					t.Errorf("priority %d: %v", i.Priority, err)
				}
			},
			"the queue is paused": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() { a.must(a.Pause(a.Context(), "q", 0)) })
				a.must(a.push())
				a.must(a.Resume(a.Context(), "q"))
				a.has(atomics)
			},
			"flush": func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("q", "old", 0)))
				a.once("atomic", n, func() { a.must(a.Flush(a.Context())) })
				a.must(a.push())
				a.has(atomics + 1)
				a.again(a.disk.Crash(disktest.Nothing()), atomics+1)
			},
			"who pushed leaves": func(t *testing.T, a *amidst) {
				ctx, leave := context.WithCancel(a.Context())
				a.once("atomic", n, leave)
				if _, err := a.PushAtomic(ctx, atomicMessages(nil)); !errors.Is(err, context.Canceled) {
					t.Errorf("pushed: %v", err)
				}
				a.has(0)
			},
			"crash": func(t *testing.T, a *amidst) {
				var left *disktest.Disk
				a.once("atomic", n, func() { left = a.disk.Kill() })
				a.must(a.push())
				a.again(left, 0)
				a.again(a.disk.Crash(disktest.Nothing()), atomics)
			},
			"the disk fails": func(t *testing.T, a *amidst) {
				a.once("atomic", n, func() {
					a.disk.Hook(func(c disktest.Call) error {
						if c.Op == disktest.Write {
							return syscall.EIO
						}
						return nil
					})
				})
				if err := a.push(); !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("pushed: %v", err)
				}
				a.disk.Hook(nil)
				a.again(a.disk.Kill(), 0)
			},
			"close": func(t *testing.T, a *amidst) {
				closed := make(chan error, 1)
				a.once("atomic", n, func() {
					go func() { closed <- a.Close() }()
					await(t, "no more calls", func() bool {
						_, err := a.Queue(a.Context(), "q")
						return errors.Is(err, engine.ErrClosed)
					})
				})
				a.must(a.push()) // who has begun is waited for
				a.must(<-closed)
				a.again(a.disk, atomics)
			},
		} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) { do(t, newAmidst(t)) })
		}
	}
}

// TestLargeBodiesOfOneKey pushes a message with a large body in the midst of a push of another with its key: one
// of them is refused.
func TestLargeBodiesOfOneKey(t *testing.T) {
	for n := 1; n <= 2; n++ { // once it is known that the key is free, and once it is still to be shown
		a := newAmidst(t)
		m := message("q", "a", 0)
		m.Body = noise(300 << 10)
		a.once("atomic", n, func() { a.must(pushAll(t, a.Engine, m)) })
		if err := pushAll(t, a.Engine, m); !errors.Is(err, engine.ErrExists) {
			t.Errorf("pushed: %v", err)
		}
		holdsReady(t, a.Engine, 1)
		a.must(a.Sound())
	}
}

// TestAtomicPushToAQueueThatIsForgotten has a queue be forgotten, as one that nobody has called for a minute and
// in which nothing is, in the midst of an atomic push: its messages are found in the queue of that name.
func TestAtomicPushToAQueueThatIsForgotten(t *testing.T) {
	clock := enginetest.NewClock()
	a := newAmidst(t)
	a.must(a.Close())
	a.cfg.Now = clock.Now
	a.Engine = a.place.open(t)
	var others []engine.Message
	for i := range 1100 { // fewer are not forgotten
		others = append(others, message(fmt.Sprint("other", i), "", time.Hour))
	}
	a.must(pushAll(t, a.Engine, others...))
	a.once("atomic", (atomics+255)/256+1, func() {
		clock.Advance(2 * time.Minute)
		names, _ := a.Names()
		a.must(a.Tidy())
		if left, _ := a.Names(); left != names-1 {
			t.Errorf("%d queues are left of %d", left, names)
		}
	})
	a.must(a.push())
	a.has(atomics)
	a.again(a.disk.Crash(disktest.Nothing()), atomics)
}

// TestAmidAFold does something while what an atomic push has revealed is folded: all is there.
func TestAmidAFold(t *testing.T) {
	ctx := t.Context()
	for n := 1; n <= (atomics+127)/128; n++ {
		for name, do := range map[string]func(t *testing.T, a *amidst) (left int){
			"all see it": func(t *testing.T, a *amidst) int {
				a.has(atomics)
				return atomics
			},
			"lease": func(t *testing.T, a *amidst) int {
				all := lease(t, a.Engine, "q", 10)
				for i, l := range all {
					if l.Key != fmt.Sprint(i) {
						t.Errorf("%s goes out as number %d", l.Key, i)
					}
				}
				settle(t, a.Engine, all[:5], engine.Ack)
				settle(t, a.Engine, all[5:], engine.Release)
				return atomics - 5
			},
			"cancel and push": func(t *testing.T, a *amidst) int {
				for _, i := range []int{0, 200, atomics - 1} {
					ref := engine.Ref{Queue: "q", Key: fmt.Sprint(i)}
					errs, err := a.Cancel(ctx, []engine.Ref{ref})
					a.must(errors.Join(err, errs[0]))
					a.must(pushAll(t, a.Engine, message("q", ref.Key, 0)))
				}
				return atomics
			},
			"replace": func(t *testing.T, a *amidst) int {
				for _, i := range []int{0, 300, atomics - 1} {
					m := message("q", fmt.Sprint(i), 0)
					m.OnConflict, m.Body = engine.Replace, []byte("new")
					a.must(pushAll(t, a.Engine, m))
					if i, err := a.Get(ctx, engine.Ref{Queue: "q", Key: m.Key}); err != nil || string(i.Body) != "new" {
						t.Errorf("%+v, %v", i, err)
					}
				}
				return atomics
			},
			"purge": func(t *testing.T, a *amidst) int {
				if n, err := a.Purge(ctx, "q", 0); err != nil || n != atomics {
					t.Error(n, err)
				}
				return 0
			},
			"flush": func(t *testing.T, a *amidst) int {
				a.must(a.Flush(ctx))
				a.again(a.disk.Crash(disktest.Nothing()), atomics)
				return atomics
			},
			"crash": func(t *testing.T, a *amidst) int {
				a.again(a.disk.Kill(), 0, atomics)
				a.again(a.disk.Crash(disktest.Seeded(uint64(n))), 0, atomics)
				return atomics
			},
			"as many again": func(t *testing.T, a *amidst) int {
				a.at["fold"] = nil
				_, err := a.PushAtomic(ctx, atomicMessages(func(m *engine.Message, _ int) { m.Key = "" }))
				a.must(err)
				return 2 * atomics
			},
		} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				a := newAmidst(t)
				left := 0
				a.once("fold", n, func() { left = do(t, a) })
				a.must(a.push())
				holdsReady(t, a.Engine, left)
				a.must(a.Sound())
				a.again(a.disk.Crash(disktest.Nothing()), left)
			})
		}
	}
}

// TestManyAsOne pushes many as one where some of them, or one at the end, meet others: what comes of it
// is what comes of few.
func TestManyAsOne(t *testing.T) {
	finishOne := func(t *testing.T, a *amidst) {
		m := message("q", "300", 0)
		m.Remember = time.Hour
		a.must(pushAll(t, a.Engine, m))
		settle(t, a.Engine, lease(t, a.Engine, "q", 1), engine.Ack)
	}
	for name, test := range map[string]struct {
		before func(t *testing.T, a *amidst)
		change func(m *engine.Message, i int)
		err    error
		left   int
	}{
		"all new": {left: atomics},
		"the last is there": {
			before: func(t *testing.T, a *amidst) { a.must(pushAll(t, a.Engine, message("q", fmt.Sprint(atomics-1), 0))) },
			err:    engine.ErrExists, left: 1,
		},
		"the last is there in a run": {
			before: func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("q", fmt.Sprint(atomics-1), 0)))
				a.must(a.Flush(t.Context()))
			},
			err: engine.ErrExists, left: 1,
		},
		"all are there in a run, and replaced": {
			before: func(t *testing.T, a *amidst) {
				a.must(a.push())
				a.must(a.Flush(t.Context()))
			},
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			left:   atomics,
		},
		"one is leased": {
			before: func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("q", "300", 0)))
				lease(t, a.Engine, "q", 1)
			},
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			err:    engine.ErrLeased,
		},
		"one is remembered": {
			before: finishOne,
			err:    engine.ErrExists,
		},
		"one was remembered, and begins anew": {
			before: finishOne,
			change: func(m *engine.Message, _ int) { m.OnConflict = engine.Replace },
			left:   atomics,
		},
		"one twice": {
			change: func(m *engine.Message, i int) {
				if i == atomics-1 {
					m.Key = "0"
				}
			},
			err: engine.ErrExists,
		},
		"one twice, replaced": {
			change: func(m *engine.Message, i int) {
				if i == atomics-1 {
					m.Key, m.OnConflict = "0", engine.Replace
				}
			},
			left: atomics - 1,
		},
		"one expires at once": {
			change: func(m *engine.Message, i int) {
				if i == 300 {
					m.Due, m.ExpireAfter = engine.When{At: time.Now().Add(-time.Hour)}, time.Minute
				}
			},
			left: atomics - 1,
		},
		"a body too large": {
			change: func(m *engine.Message, i int) {
				if i == 300 {
					m.Body = make([]byte, 65<<20)
				}
			},
			err: engine.ErrTooLarge,
		},
		"too many for the queue": {
			before: func(t *testing.T, a *amidst) {
				_, err := a.Configure(t.Context(), "q", engine.Settings{MaxPending: atomics - 1}, "")
				a.must(err)
			},
			err: engine.ErrLimit,
		},
		"one is there, of more than the queue may have": {
			before: func(t *testing.T, a *amidst) {
				a.must(pushAll(t, a.Engine, message("other", "a", 0), message("other", "b", 0)))
				_, err := a.Configure(t.Context(), "other", engine.Settings{MaxPending: 1}, "")
				a.must(err)
			},
			change: func(m *engine.Message, i int) {
				if i == 300 {
					m.Queue, m.Key, m.OnConflict = "other", "a", engine.Keep
				}
			},
			left: atomics - 1,
		},
		"as many as the queue may have": {
			before: func(t *testing.T, a *amidst) {
				_, err := a.Configure(t.Context(), "q", engine.Settings{MaxPending: atomics}, "")
				a.must(err)
			},
			left: atomics,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAmidst(t)
			if test.before != nil {
				test.before(t, a)
			}
			r, err := a.PushAtomic(t.Context(), atomicMessages(test.change))
			if !errors.Is(err, test.err) {
				t.Errorf("pushed: %v, want %v", err, test.err)
			}
			if refused := 0; err != nil && r != nil {
				for i := range r {
					if r[i].Err != nil {
						refused++
					}
				}
				if refused != 1 {
					t.Errorf("%d are refused", refused)
				}
			}
			l, err := a.Queue(t.Context(), "q")
			if err != nil || int(l.Ready) != test.left && name != "one expires at once" {
				t.Errorf("%d are left, want %d: %v", l.Ready, test.left, err)
			}
			leased := 0
			for some := lease(t, a.Engine, "q", 1000); len(some) > 0; some = lease(t, a.Engine, "q", 1000) {
				leased += len(some)
			}
			if leased != test.left {
				t.Errorf("%d are leased, want %d", leased, test.left)
			}
			a.must(a.Sound())
		})
	}
}
