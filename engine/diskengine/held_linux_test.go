package diskengine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// holdTimes notes for how long the lock of an engine was held at most, by processor time: how busy the
// machine is does not count.
type holdTimes struct {
	mu    sync.Mutex
	began time.Duration
	since time.Time
	by    int // thread
	on    bool
	most  map[string]hold // by who held it
}

type hold struct{ cpu, wall time.Duration }

func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// held is the Held of a Tune. Who holds the lock does not block; only when he is preempted he may go on on
// another thread, and then all the time counts.
func (h *holdTimes) held(begins bool) {
	if begins {
		h.began, h.since, h.by = processorTime(), time.Now(), unix.Gettid()
		return
	}
	took := hold{processorTime() - h.began, time.Since(h.since)}
	if unix.Gettid() != h.by || took.cpu > took.wall { // it went on on another thread
		took.cpu = took.wall
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.on {
		return
	}
	var pc [16]uintptr
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc[:])])
	var who []string
	for {
		f, more := frames.Next()
		name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		if !strings.HasPrefix(name, "diskengine.") {
			break
		}
		who = append(who, strings.TrimPrefix(name, "diskengine."))
		if !more {
			break
		}
	}
	at := strings.Join(who, " < ")
	m := h.most[at]
	h.most[at] = hold{max(m.cpu, took.cpu), max(m.wall, took.wall)}
}

// during returns the longest hold in the course of do.
func (h *holdTimes) during(do func()) (longest hold, at string) {
	runtime.LockOSThread() // of which it is the time
	defer runtime.UnlockOSThread()
	h.mu.Lock()
	h.most, h.on = map[string]hold{}, true
	h.mu.Unlock()
	do()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = false
	for who, d := range h.most {
		if d.cpu > longest.cpu {
			longest, at = d, who
		}
	}
	return longest, at
}

// stock is an engine whose holds are noted, and what tests need of it.
type stock struct {
	*diskengine.Engine
	*holdTimes
	testing.TB
}

func newStock(t testing.TB) *stock {
	s := &stock{TB: t, holdTimes: new(holdTimes)}
	e, err := diskengine.OpenOn(vfs.OS{}, t.TempDir(), &diskengine.Config{Logger: quiet}, diskengine.Tune{Held: s.held, SegmentBytes: 64 << 20})
	s.must(err)
	t.Cleanup(func() { s.must(e.Close()) })
	s.Engine = e
	return s
}

func (s *stock) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// fill pushes messages in batches.
func (s *stock) fill(n int, m func(i int) engine.Message) {
	s.Helper()
	for at := 0; at < n; at += 1000 {
		some := make([]engine.Message, min(1000, n-at))
		for i := range some {
			some[i] = m(at + i)
		}
		s.must(pushAll(s, s.Engine, some...))
	}
}

// take leases messages in batches.
func (s *stock) take(queue string, n int) (all []engine.Lease) {
	s.Helper()
	for len(all) < n {
		some := lease(s, s.Engine, queue, min(1000, n-len(all)))
		if len(some) == 0 {
			s.Fatalf("%d of %d were leased", len(all), n)
		}
		all = append(all, some...)
	}
	return all
}

func (s *stock) list(queue string, state engine.State, limit int, newest bool) {
	s.Helper()
	_, err := s.List(context.Background(), engine.ListQuery{Queue: queue, State: state, Limit: limit, Newest: newest})
	s.must(err)
}

// TestHoldsDoNotGrow makes calls that have to do with all leases of a queue, where they are few and
// where they are many: the lock is held for about as long.
func TestHoldsDoNotGrow(t *testing.T) {
	const few, many = 300, 12_000
	s, ctx := newStock(t), context.Background()
	for queue, n := range map[string]int{"few": few, "many": many} {
		s.fill(n, func(i int) engine.Message { return message(queue, fmt.Sprint(i), 0) })
		s.take(queue, n)
	}
	for name, call := range map[string]func(queue string){
		"list":         func(queue string) { s.list(queue, engine.Leased, 100, false) },
		"list, newest": func(queue string) { s.list(queue, engine.Leased, 100, true) },
		"count":        func(queue string) { _, err := s.Queue(ctx, queue); s.must(err) },
		"forecast":     func(queue string) { _, err := s.Forecast(ctx, queue, time.Minute, time.Hour); s.must(err) },
		"purge":        func(queue string) { _, err := s.Purge(ctx, queue, 0); s.must(err) },
	} {
		shortest := map[string]time.Duration{"few": time.Hour, "many": time.Hour}
		for range 7 {
			for queue := range shortest {
				longest, _ := s.during(func() { call(queue) })
				shortest[queue] = min(shortest[queue], longest.cpu)
			}
		}
		t.Logf("%s: the lock is held for %v with %d leases, for %v with %d", name, shortest["few"], few, shortest["many"], many)
		if shortest["many"] > 6*shortest["few"]+200*time.Microsecond {
			t.Errorf("%s holds the lock for %v with %d leases, for %v with %d", name, shortest["few"], few, shortest["many"], many)
		}
	}
}

// TestMergeHoldsTheLockForFew has messages removed of an sstable while what it was merged to is made to count: the lock is
// held as long for many of them as for few.
func TestMergeHoldsTheLockForFew(t *testing.T) {
	const few, many = 400, 40_000
	longest := func(n int) (longest time.Duration) {
		s := &stock{TB: t, holdTimes: new(holdTimes)}
		purge, merging, settled := "", false, false
		between := func(where string) {
			if merging = merging || where == "merged"; where != "settling" || !merging || settled {
				return
			}
			settled = true
			_, err := s.Purge(context.Background(), purge, 0)
			s.must(err)
			s.mu.Lock()
			s.most = map[string]hold{} // of what comes now
			s.mu.Unlock()
		}
		e, err := diskengine.OpenOn(disktest.New(nil), "data", &diskengine.Config{Logger: quiet}, diskengine.Tune{Held: s.held, Between: between, SegmentBytes: 64 << 20})
		s.must(err)
		defer func() { s.must(e.Close()) }()
		s.Engine, purge = e, "q"
		s.fill(n, func(i int) engine.Message { return message("q", "", time.Hour) })
		s.fill(few, func(i int) engine.Message { return message("stays", "", time.Hour) })
		s.must(e.Flush(t.Context()))
		hold, _ := s.during(func() { s.must(e.Merge(t.Context())) })
		if !settled {
			t.Fatal("nothing was purged while the merge was made to count")
		}
		return hold.cpu
	}
	shortest := map[int]time.Duration{few: time.Hour, many: time.Hour}
	for range 3 {
		for n := range shortest {
			shortest[n] = min(shortest[n], longest(n))
		}
	}
	t.Log(shortest)
	if shortest[many] > 6*shortest[few]+200*time.Microsecond {
		t.Errorf("the lock is held for %v where %d go meanwhile, for %v where %d do", shortest[many], many, shortest[few], few)
	}
}
