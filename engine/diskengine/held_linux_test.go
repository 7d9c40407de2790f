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
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
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

// BenchmarkHeld makes each call of a store with 300,000 leases, and with a million messages that wait in
// 10,000 queues, and tells for how long the lock was held at most: go test -run '^$' -bench Held -benchtime 1x.
func BenchmarkHeld(b *testing.B) {
	const leased, queues, pending = 300_000, 10_000, 1_000_000
	s, ctx := newStock(b), context.Background()
	s.fill(leased, func(i int) engine.Message { return message("leased", fmt.Sprint("k", i), 0) })
	leases := s.take("leased", leased)
	s.fill(pending, func(i int) engine.Message {
		return message(fmt.Sprint("q", i%queues), fmt.Sprint("p", i), time.Duration(i%86400)*time.Second)
	})
	s.fill(pending/10, func(i int) engine.Message { return message("leased", fmt.Sprint("w", i), time.Duration(i)*time.Second) })
	all := func(n int, prefix string) (all []engine.Message) {
		for i := range n {
			all = append(all, message("many", fmt.Sprint(prefix, i), time.Hour))
		}
		return all
	}
	replace := func() error {
		msgs := all(1000, "a")
		for i := range msgs {
			msgs[i].OnConflict = engine.Replace
		}
		_, err := s.PushAtomic(ctx, msgs)
		return err
	}
	ref := func(queue, key string) engine.Ref { return engine.Ref{Queue: queue, Key: key} }
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"push", func() error { return pushAll(b, s.Engine, message("many", "one", time.Hour)) }},
		{"push 10,000", func() error { return pushAll(b, s.Engine, all(10_000, "b")...) }},
		{"push 1,000 as one", func() error { _, err := s.PushAtomic(ctx, all(1000, "a")); return err }},
		{"push 1,000 as one to as many queues", func() error {
			msgs := all(1000, "c")
			for i := range msgs {
				msgs[i].Queue = fmt.Sprint("q", i)
			}
			_, err := s.PushAtomic(ctx, msgs)
			return err
		}},
		{"replace 1,000 as one", replace},
		{"push a body of 64 MiB", func() error {
			m := message("many", "large", time.Hour)
			m.Body = make([]byte, 64<<20)
			return pushAll(b, s.Engine, m)
		}},
		{"lease", func() error { s.take("q1", 1); return nil }},
		{"claim", func() error { _, err := s.Claim(ctx, ref("q0", "p0"), engine.Want{}); return err }},
		{"get", func() error { _, err := s.Get(ctx, ref("leased", "k7")); return err }},
		{"reschedule", func() error {
			_, err := s.Reschedule(ctx, ref("q3", "p3"), engine.When{In: time.Hour})
			return err
		}},
		{"cancel", func() error { _, err := s.Cancel(ctx, []engine.Ref{ref("q2", "p2")}); return err }},
		{"extend 1,000", func() error { settle(b, s.Engine, leases[:1000], engine.Extend); return nil }},
		{"release 1,000", func() error { settle(b, s.Engine, leases[1000:2000], engine.Release); return nil }},
		{"ack 1,000", func() error { settle(b, s.Engine, leases[2000:3000], engine.Ack); return nil }},
		{"bury 1,000", func() error { settle(b, s.Engine, leases[3000:4000], engine.Bury); return nil }},
		{"list leased", func() error { s.list("leased", engine.Leased, 1000, false); return nil }},
		{"list leased, newest first", func() error { s.list("leased", engine.Leased, 1000, true); return nil }},
		{"list scheduled", func() error { s.list("leased", engine.Scheduled, 1000, false); return nil }},
		{"list ready", func() error { s.list("leased", engine.Ready, 1000, false); return nil }},
		{"list dead", func() error { s.list("leased", engine.Dead, 1000, false); return nil }},
		{"count", func() error { _, err := s.Queue(ctx, "leased"); return err }},
		{"count 1,000 queues", func() error { _, _, err := s.Queues(ctx, "", 1000); return err }},
		{"forecast", func() error { _, err := s.Forecast(ctx, "leased", time.Minute, 24*time.Hour); return err }},
		{"redrive 1,000", func() error { _, err := s.Redrive(ctx, "leased", nil, 0); return err }},
		{"pause", func() error { return s.Pause(ctx, "leased", 0) }},
		{"resume", func() error { return s.Resume(ctx, "leased") }},
		{"configure", func() error {
			_, err := s.Configure(ctx, "leased", engine.Settings{InFlight: 1_000_000}, "")
			return err
		}},
		{"settings", func() error { _, _, err := s.Settings(ctx, "leased"); return err }},
		{"figures", func() error { s.Figures(); return nil }},
		{"flush", func() error { return s.Flush(ctx) }},
		{"merge", func() error { return s.Merge(ctx) }},
		{"lease from an sstable", func() error { s.take("q5", 1); return nil }},
		{"replace 1,000 of an sstable as one", replace},
		{"backup", func() error { _, err := s.Backup(ctx, b.TempDir()); return err }},
		{"purge", func() error { _, err := s.Purge(ctx, "leased", engine.PurgeDead|engine.PurgeFinished); return err }},
		{"purge of another queue", func() error { _, err := s.Purge(ctx, "many", 0); return err }},
	} {
		b.Run(call.name, func(b *testing.B) {
			longest, by := s.during(func() { s.must(call.do()) })
			b.ReportMetric(float64(longest.cpu.Nanoseconds())/1000, "held-µs")
			b.ReportMetric(float64(longest.wall.Nanoseconds())/1000, "held-on-the-wall-µs")
			b.Log(by)
		})
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
		e, err := diskengine.OpenOn(vfstest.New(nil), "data", &diskengine.Config{Logger: quiet}, diskengine.Tune{Held: s.held, Between: between, SegmentBytes: 64 << 20})
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
