package diskengine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPeekIsWhatIsLeasedNext peeks before each lease while messages get other priorities, are flushed, expire and
// become due: the order is the same, and exact though few messages are in memory.
func TestPeekIsWhatIsLeasedNext(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			clock := enginetest.NewClock()
			tune := diskengine.Tune{SegmentBytes: 64 << 10, BlockBytes: 512, MergeTables: 3, Ready: []int{0, 300}[seed%2], NearBytes: []int64{0, 1}[seed/2%2]}
			tune.Sound = func(err error) { t.Error(err) }
			e := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, tune}.open(t)
			priority := func() *uint32 { return new(rng.Uint32N(4)) }
			var held []engine.Lease
			for range 400 {
				switch op := rng.IntN(20); {
				case op < 6:
					m := message([]string{"q", "other"}[rng.IntN(2)], "", time.Duration(rng.IntN(20)-10)*time.Second)
					if m.Priority = priority(); op == 0 {
						m.ExpireAfter = 15 * time.Second
					}
					must(t, pushAll(t, e, m))
				case op < 10 && len(held) > 0:
					i := rng.IntN(len(held))
					reprioritize(t, e, held[i:i+1], []engine.Action{engine.Release, engine.Retry, engine.Snooze}[rng.IntN(3)], *priority())
					held = append(held[:i], held[i+1:]...)
				case op == 10:
					must(t, e.Flush(t.Context()))
				case op == 11:
					must(t, e.Merge(t.Context()))
				case op == 12:
					clock.Advance(time.Second)
				default:
					first, err := e.Peek(t.Context(), []string{"q", "none", "q"})
					must(t, err)
					got := lease(t, e, "q", 1)
					if held = append(held, got...); len(got) == 0 {
						got = make([]engine.Lease, 1)
					}
					a, b := first[0], first[2]
					if a.ID != b.ID || a.ID != got[0].ID || a.Priority != got[0].Priority || !a.Due.Equal(got[0].Due) || first[1].ID != 0 {
						t.Fatalf("peeked are %+v, leased is %+v", first, got[0].Info)
					}
				}
			}
			must(t, e.Close())
		})
	}
}

// TestPeekLooksBehindWhatWasClaimed claims what a peek has shown: the next peek looks on, among those too that were
// not in memory.
func TestPeekLooksBehindWhatWasClaimed(t *testing.T) {
	const n, second = 1000, 900
	for name, tune := range map[string]diskengine.Tune{"forgotten": {SegmentBytes: 1 << 20, NearBytes: 1}, "full": {SegmentBytes: 1 << 20, Ready: 4}} {
		e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet}, tune}.open(t)
		must(t, pushAll(t, e, message("other", "", 0)))
		msgs := slices.Repeat([]engine.Message{message("q", "", 0)}, n)
		msgs[0].Priority, msgs[second].Priority = new(uint32(0)), new(uint32(1))
		must(t, pushAll(t, e, msgs...))
		peek := func(queue string) engine.ID {
			first, err := e.Peek(t.Context(), []string{queue})
			must(t, err)
			return first[0].ID
		}
		claim := func(id engine.ID) {
			_, err := e.Claim(t.Context(), engine.Ref{Queue: "q", ID: id, IfState: engine.Ready}, engine.Want{})
			must(t, err)
		}
		if first := peek("q"); first != 2 {
			t.Errorf("%s: first is %v", name, first)
		}
		peek("other")
		want := []engine.ID{2, 2 + second}
		if name == "full" { // the order is exact among the first few
			want = []engine.ID{2, 3, 4, 5, 6, 7}
		}
		for _, id := range want {
			if got := peek("q"); got != id {
				t.Errorf("%s: %v comes first, not %v", name, got, id)
			}
			claim(id)
		}
		if name == "full" {
			for id := range engine.ID(5) {
				claim(8 + id)
			}
			if got := peek("q"); got < 13 {
				t.Errorf("%s: %v comes first", name, got)
			}
		}
		must(t, e.Close())
	}
}

// TestPeekReadsOnce peeks at a queue that is spread over many sstables: what was read once is not read again, and
// of a long message only the beginning.
func TestPeekReadsOnce(t *testing.T) {
	const tables = 100
	d := disktest.New(nil)
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 4 << 20, MergeTables: 1000}}.open(t)
	for range tables {
		m := message("q", "", 0)
		m.Body = noise(100 << 10)
		must(t, pushAll(t, e, m))
		must(t, e.Flush(t.Context()))
	}
	var reads, bytes atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Read && strings.HasSuffix(c.Name, ".run") {
			reads.Add(1)
			bytes.Add(int64(c.Len))
		}
		return nil
	})
	defer d.Hook(nil)
	for i, most := range []int64{10 * tables, 5, 5} {
		reads.Store(0)
		bytes.Store(0)
		if first, err := e.Peek(t.Context(), []string{"q"}); err != nil || first[0].ID != 1 {
			t.Fatal(first, err)
		}
		if reads.Load() > most || bytes.Load() > 20<<10*most {
			t.Errorf("peek %d: %d reads of %d bytes", i, reads.Load(), bytes.Load())
		}
	}
	d.Hook(nil)
	must(t, e.Close())
}

// TestFind finds messages wherever they are stored, and none that has ended.
func TestFind(t *testing.T) {
	clock := enginetest.NewClock()
	e := place{disktest.New(nil), "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, Still: true}}.open(t)
	for _, name := range []string{"a", "b"} {
		_, err := e.Configure(t.Context(), name, engine.Settings{History: time.Hour, DeadKeep: time.Hour}, "")
		must(t, err)
	}
	var ids []engine.ID
	var want []string
	note := func(id engine.ID, queue string) {
		ids, want = append(ids, id), append(want, queue)
	}
	end := func(do engine.Action, found string) {
		must(t, pushAll(t, e, message("b", fmt.Sprint(len(ids)), 0)))
		note(e.NextID()-1, found)
		settle(t, e, lease(t, e, "b", 1), do)
	}
	for _, move := range []func() error{func() error { return e.Flush(t.Context()) }, func() error { return e.Seal(t.Context()) }, func() error { return nil }} {
		note(e.NextID(), "a")
		must(t, pushAll(t, e, message("a", "", time.Hour)))
		end(engine.Ack, "")
		end(engine.Bury, "b")
		m := message("b", "", 0)
		m.ExpireAfter = time.Minute
		note(e.NextID(), "b") // until its lease ends
		must(t, pushAll(t, e, m))
		lease(t, e, "b", 1)
		note(e.NextID(), "")
		must(t, pushAll(t, e, m))
		clock.Advance(2 * time.Minute)
		must(t, move())
	}
	note(0, "")
	note(e.NextID(), "")
	note(1<<63|1, "")
	check := func() {
		t.Helper()
		if got, err := e.Find(t.Context(), ids); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v are found in %q, want %q, %v", ids, got, want, err)
		}
	}
	check()
	must(t, e.Flush(t.Context()))
	check()
	clock.Advance(2 * time.Hour)
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "b", "") // neither the dead nor the leased are there any more
	}
	check()
	must(t, e.Close())
}
