package diskengine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	cockroach "github.com/cockroachdb/errors"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// coldDisk is an engine whose messages lie in tables on disk, none of them in
// memory, and a disk whose n-th read from some moment on fails, that one only. Its
// loader sleeps, so that only calls read.
type coldDisk struct {
	*Engine
	t     *testing.T
	clock *enginetest.Clock
	fail  atomic.Int64 // 0: none; n: the n-th read from now

	onRead atomic.Pointer[func()] // called at each read

	rot    atomic.Bool  // what is read then lies in a damaged block from then on
	rotten atomic.Int64 // where that is
}

var errRot = cockroach.Mark(errors.New("a bad block"), pebble.ErrCorruption)

// scene is what a coldDisk begins with: a file system and the time.
type scene struct {
	mem *vfs.MemFS
	at  time.Time
}

// newScene plays set on a new engine and closes that. Many messages of other queues
// lie around those of the queue q, so that what opening reads is far from them.
func newScene(t *testing.T, set func(d *coldDisk)) scene {
	t.Helper()
	s := scene{mem: vfs.NewCrashableMem(), at: enginetest.NewClock().Now()}
	d := s.open(t)
	crowd := func(queue string) {
		var msgs []engine.Message
		for i := range 1000 {
			m := waiting(fmt.Sprint("crowd ", i), time.Second)
			m.Queue = queue
			msgs = append(msgs, m)
		}
		pushAll(t, d.Engine, msgs)
	}
	crowd("before")
	if _, err := d.makeQueue("q"); err != nil {
		t.Fatal(err)
	}
	crowd("behind")
	set(d)
	if err := errors.Join(d.store.db.Flush(), d.Close()); err != nil {
		t.Fatal(err)
	}
	s.at = d.clock.Now()
	return s
}

func (s scene) open(t *testing.T) *coldDisk {
	t.Helper()
	d := &coldDisk{t: t, clock: enginetest.NewClock()}
	d.clock.Set(s.at)
	fs := errorfs.Wrap(s.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fn := d.onRead.Load(); op.Kind == errorfs.OpFileReadAt && fn != nil {
			(*fn)()
		}
		switch {
		case op.Kind != errorfs.OpFileReadAt:
			return nil
		case d.fail.Load() > 0 && d.fail.Add(-1) == 0:
			if !d.rot.Load() {
				return syscall.EIO
			}
			d.rotten.Store(op.Offset)
			return errRot
		case d.rot.Load() && op.Offset == d.rotten.Load():
			return errRot
		}
		return nil
	}))
	var err error
	if d.Engine, err = Open("data", &Config{FS: fs, Now: d.clock.Now, Logger: quietLog, MinFreeBytes: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, q := range d.byName {
		q.kicked = true // the loader thinks it has been told
	}
	return d
}

// eachRead plays call on copies of a scene with its first read failing, then the
// second, and so on until there is none left to fail.
func (s scene) eachRead(t *testing.T, call func(d *coldDisk) error, after func(t *testing.T, d *coldDisk, failed bool)) {
	for n := int64(1); !t.Failed(); n++ {
		var spared bool
		t.Run(fmt.Sprintf("read %d", n), func(t *testing.T) {
			d := scene{s.mem.CrashClone(vfs.CrashCloneCfg{}), s.at}.open(t)
			d.fail.Store(n)
			err := call(d)
			spared = d.fail.Swap(0) > 0
			if err != nil && (spared || !errors.Is(err, syscall.EIO)) {
				t.Fatalf("a read failed: %v, the call: %v", !spared, err)
			}
			after(t, d, err != nil)
		})
		if spared {
			if n == 1 {
				t.Error("nothing was read")
			}
			return
		}
	}
}

// leaseAll leases so many messages, no fewer.
func leaseAll(d *coldDisk, most int) ([]engine.Lease, error) {
	g, err := d.Lease(d.t.Context(), []engine.Want{{Queue: "q", Max: most, Remote: true}})
	if err != nil {
		return nil, err
	}
	if g := g.Queues[0]; g.Err != nil && len(g.Messages) > 0 {
		return nil, fmt.Errorf("both %d messages and %w", len(g.Messages), g.Err)
	}
	if g := g.Queues[0]; g.Err == nil && len(g.Messages) != most {
		return nil, fmt.Errorf("leased %d of %d", len(g.Messages), most)
	}
	return g.Queues[0].Messages, g.Queues[0].Err
}

const few = 12

func pushFew(d *coldDisk, body int) []engine.ID {
	var msgs []engine.Message
	for i := range few {
		m := waiting(fmt.Sprint(i), time.Second)
		m.Body = make([]byte, body)
		msgs = append(msgs, m)
	}
	return pushAll(d.t, d.Engine, msgs)
}

// TestReadErrorWhileLeasing lets one read of a Lease fail: it changes nothing, and
// the next Lease hands out everything.
func TestReadErrorWhileLeasing(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]int{"small": 10, "large": 4 * inlineBody} {
		s := newScene(t, func(d *coldDisk) {
			pushFew(d, body)
			d.clock.Advance(time.Second)
		})
		for _, most := range []int{1, few} {
			t.Run(fmt.Sprintf("%s, %d at once", name, most), func(t *testing.T) {
				s.eachRead(t,
					func(d *coldDisk) error { _, err := leaseAll(d, most); return err },
					func(t *testing.T, d *coldDisk, failed bool) {
						if !failed {
							return
						}
						sound(t, d.queue("q"))
						for i := range few {
							if i, err := d.Get(t.Context(), engine.Ref{Queue: "q", Key: fmt.Sprint(i)}); err != nil || i.State != engine.Ready || i.Attempt != 0 {
								t.Errorf("%+v, %v", i, err)
							}
						}
						if _, err := leaseAll(d, few); err != nil {
							t.Errorf("then: %v", err)
						}
						sound(t, d.queue("q"))
					})
			})
		}
	}
}

// TestReadErrorWhileLapsing lets one read fail in the call that meets leases that
// are over: none of them is lost.
func TestReadErrorWhileLapsing(t *testing.T) {
	newScene(t, func(d *coldDisk) {
		pushFew(d, 10)
		d.clock.Advance(time.Second)
		if _, err := leaseAll(d, few); err != nil {
			d.t.Fatal(err)
		}
		d.clock.Advance(time.Hour)
	}).eachRead(t,
		func(d *coldDisk) error {
			_, err := leaseAll(d, few)
			return err
		},
		func(t *testing.T, d *coldDisk, failed bool) {
			if !failed {
				return
			}
			got, err := leaseAll(d, few)
			if err != nil {
				t.Errorf("then: %v", err)
			}
			for _, l := range got {
				if l.Attempt != 2 {
					t.Errorf("attempt %d", l.Attempt)
				}
			}
			sound(t, d.queue("q"))
		})
}

// TestLapseInADamagedBlock has messages whose leases are over lie in a block that
// cannot be read: they stop nobody, and nothing of them is lost.
func TestLapseInADamagedBlock(t *testing.T) {
	const many = 200
	s := newScene(t, func(d *coldDisk) {
		var msgs []engine.Message
		for i := range many {
			m := waiting(fmt.Sprint(i), 0)
			m.Body = []byte(strings.Repeat(rand.Text(), 20)) // they fill several blocks
			msgs = append(msgs, m)
		}
		pushAll(t, d.Engine, msgs)
		if _, err := leaseAll(d, many); err != nil {
			t.Fatal(err)
		}
		d.clock.Advance(time.Hour)
	})
	var d *coldDisk
	lease := func() int {
		g, err := d.Lease(t.Context(), []engine.Want{{Queue: "q", Max: many}})
		if err != nil || g.Queues[0].Err != nil {
			t.Fatal(err, g.Queues)
		}
		return len(g.Queues[0].Messages)
	}
	got := many
	for range 50 { // what Pebble reads beside may meet the damage in its place
		d = scene{s.mem.CrashClone(vfs.CrashCloneCfg{}), s.at}.open(t)
		d.rotten.Store(-1)
		d.rot.Store(true)
		d.fail.Store(2)
		if got = lease(); got < many {
			break
		}
	}
	if got == 0 || got == many {
		t.Fatalf("leased %d of %d around the damage", got, many)
	}
	if n := lease(); n > 0 {
		t.Errorf("leased %d more", n)
	}
	d.rot.Store(false)
	sound(t, d.queue("q"))
	d.clock.Advance(2 * lapseAgain * time.Millisecond)
	if n := lease(); got+n != many {
		t.Errorf("leased %d, and %d when it could be read again, of %d", got, n, many)
	}
	sound(t, d.queue("q"))
}

// TestReadErrorChangesNothing lets each read of a call fail in turn: the disk and
// memory are as they were.
func TestReadErrorChangesNothing(t *testing.T) {
	t.Parallel()
	q := func(key string) engine.Ref { return engine.Ref{Queue: "q", Key: key} }
	first := func(errs []error, err error) error {
		if err == nil {
			err = errs[0]
		}
		return err
	}
	push := func(d *coldDisk, c engine.Conflict, atomic bool) error {
		m := waiting("1", time.Minute)
		m.OnConflict = c
		call := d.Push
		if atomic {
			call = d.PushAtomic
		}
		r, err := call(d.t.Context(), []engine.Message{m})
		if err == nil {
			err = r[0].Err
		}
		return err
	}
	var before []byte
	s := newScene(t, func(d *coldDisk) {
		pushFew(d, 4*inlineBody)
		d.clock.Advance(time.Second)
		before = frozen(t, d.store.db)
	})
	for name, call := range map[string]func(d *coldDisk) error{
		"replace":     func(d *coldDisk) error { return push(d, engine.Replace, false) },
		"rearm":       func(d *coldDisk) error { return push(d, engine.Rearm, false) },
		"push atomic": func(d *coldDisk) error { return push(d, engine.Replace, true) },
		"cancel":      func(d *coldDisk) error { return first(d.Cancel(d.t.Context(), []engine.Ref{q("1")})) },
		"cancel by id": func(d *coldDisk) error {
			return first(d.Cancel(d.t.Context(), []engine.Ref{{Queue: "q", ID: 2003}})) // behind the crowd's ids
		},
		"reschedule": func(d *coldDisk) error {
			_, err := d.Reschedule(d.t.Context(), q("1"), engine.When{})
			return err
		},
		"get":   func(d *coldDisk) error { _, err := d.Get(d.t.Context(), q("1")); return err },
		"claim": func(d *coldDisk) error { _, err := d.Claim(d.t.Context(), q("1"), engine.Want{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s.eachRead(t,
				call,
				func(t *testing.T, d *coldDisk, failed bool) {
					sound(t, d.queue("q"))
					if failed && string(frozen(t, d.store.db)) != string(before) {
						t.Error("the disk was changed")
					}
				})
		})
	}
}

// TestOrdersAreReadWithoutTheLock watches the lock of a queue while the disk is read
// of which many messages are due: others get at the queue meanwhile.
func TestOrdersAreReadWithoutTheLock(t *testing.T) {
	const many = 2000
	s := newScene(t, func(d *coldDisk) {
		var msgs []engine.Message
		for range many {
			msgs = append(msgs, waiting("", time.Second))
		}
		pushAll(t, d.Engine, msgs)
		d.clock.Advance(time.Second)
	})
	for name, call := range map[string]func(d *coldDisk) error{
		"queue":    func(d *coldDisk) error { _, err := d.Queue(t.Context(), "q"); return err },
		"queues":   func(d *coldDisk) error { _, _, err := d.Queues(t.Context(), "", 10); return err },
		"forecast": func(d *coldDisk) error { _, err := d.Forecast(t.Context(), "q", time.Minute, time.Hour); return err },
		"prepare":  func(d *coldDisk) error { return d.queue("q").prepare(d.now().ms) },
		"load":     func(d *coldDisk) error { _, err := d.queue("q").load(d.now().ms); return err },
		"mark":     func(d *coldDisk) error { return d.queue("q").raiseMark() },
	} {
		t.Run(name, func(t *testing.T) {
			d := scene{s.mem.CrashClone(vfs.CrashCloneCfg{}), s.at}.open(t)
			q := d.queue("q")
			reads := 0
			watch := func() {
				if !strings.Contains(string(debug.Stack()), "diskengine.scan(") {
					return // Pebble reads for itself
				}
				reads++
				if !q.mu.TryLock() {
					t.Error("the disk is read under the lock")
					return
				}
				q.mu.Unlock()
			}
			d.onRead.Store(&watch)
			if err := call(d); err != nil {
				t.Error(err)
			}
			d.onRead.Store(nil)
			if reads == 0 {
				t.Error("nothing was read")
			}
			sound(t, q)
		})
	}
}
