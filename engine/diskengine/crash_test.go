package diskengine_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// crash is a store that ends at one operation on its file system, or at each of them.
type crash struct {
	ledger
	clock  *enginetest.Clock
	counts func(op, name string) bool // which operations count; nil: all
	at     int                        // which of them it is; 0: each

	ends []end
}

// end is what a crash leaves.
type end struct {
	promised     map[string]fate // what had been answered by then
	lost, killed *vfs.MemFS      // after a loss of power, after kill -9
}

// acking is the fate of a message that is leased and whose ack is under way.
const acking fate = "acking"

func (c *crash) open(t *testing.T, fs vfs.FS) *diskengine.Engine {
	t.Helper()
	e, err := diskengine.Open("data", &diskengine.Config{FS: fs, Now: c.clock.Now, Logger: quiet, MemTableBytes: smallTable, CacheBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// run lets fn work with the store in mem.
func (c *crash) run(t *testing.T, mem *vfs.MemFS, fn func(e engine.Engine)) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	e := c.open(t, &faultFS{FS: mem, before: func(op, name string) error {
		if op == "sync" {
			for range 100 {
				runtime.Gosched() // who does not wait for it gets on
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if c.counts != nil && !c.counts(op, name) {
			return nil
		}
		if n++; n == c.at || c.at == 0 {
			var at end
			at.promised = c.during(func() { at.lost, at.killed = mem.CrashClone(vfs.CrashCloneCfg{}), copyOf(mem) })
			c.ends = append(c.ends, at)
		}
		return nil
	}})
	fn(e)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, at := range c.ends {
		for key, f := range at.promised {
			if f == acking {
				at.promised[key] = unsure
			}
		}
	}
}

// holds opens again, after each end, what it left, and looks for what was promised.
func (c *crash) holds(t *testing.T) {
	t.Helper()
	for i, at := range c.ends {
		for _, mem := range []*vfs.MemFS{at.lost, at.killed} {
			e := c.open(t, mem)
			check(t, e, at.promised, mem == at.lost)
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c.ends[i] = end{}
	}
}

func copyOf(mem *vfs.MemFS) *vfs.MemFS {
	return mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
}

// push pushes a message; somebody may lease it before that is answered.
func (c *crash) push(t *testing.T, e engine.Engine, key string) {
	c.set(key, unsure)
	if _, err := e.Push(t.Context(), []engine.Message{message("q", key, 0)}); err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fates[key] == unsure {
		c.fates[key] = kept
	}
}

// handle leases messages and acks them, or holds them.
func (c *crash) handle(t *testing.T, e engine.Engine, ack bool) {
	g, err := e.Lease(t.Context(), []engine.Want{{Queue: "q", Max: 2, TTR: time.Hour, Remote: true}})
	if err != nil {
		t.Error(err)
		return
	}
	for _, m := range g.Queues[0].Messages {
		c.set(m.Key, taken)
		if !ack {
			continue
		}
		c.set(m.Key, acking)
		if s, err := e.Settle(t.Context(), []engine.Settlement{{Token: m.Token, Do: engine.Ack}}); err != nil || s[0].Err != nil {
			t.Error(err, s)
		}
		c.set(m.Key, gone)
	}
}

// TestCrashInACrowd ends a store while many push, lease and ack at once, so that syncs
// somebody waits for meet those nobody waits for.
func TestCrashInACrowd(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		c := crash{ledger: ledger{fates: map[string]fate{}}, clock: enginetest.NewClock(), at: 100 + 17*round}
		c.run(t, vfs.NewCrashableMem(), func(e engine.Engine) {
			var crowd sync.WaitGroup
			for i := range 1 + round%5 {
				crowd.Go(func() {
					for j := range 120 / (1 + round%5) {
						c.push(t, e, fmt.Sprintf("%d-%d", i, j))
					}
				})
			}
			for i := range 3 {
				crowd.Go(func() {
					for range 60 {
						c.handle(t, e, i > 0)
					}
				})
			}
			crowd.Wait()
		})
		if c.holds(t); len(c.ends) == 0 && round == 0 {
			t.Errorf("there are no %d operations", c.at)
		}
	}
}

// TestKilledTwice kills a process that has written zeros and no record behind them,
// and the next one at each operation of its opening and first push: a log that ends in
// zeros is no damage, also when there is another one after it.
func TestKilledTwice(t *testing.T) {
	t.Parallel()
	writes := map[string]int{}
	first := crash{ledger: ledger{fates: map[string]fate{}}, clock: enginetest.NewClock(),
		counts: func(op, name string) bool {
			if op == "write" && filepath.Ext(name) == ".log" {
				writes[name]++
			}
			return op == "write" && writes[name] == 2
		}}
	first.run(t, vfs.NewCrashableMem(), func(e engine.Engine) {
		if err := first.history(t, e); err != nil {
			t.Fatal(err)
		}
	})
	seconds := 0
	for _, at := range first.ends {
		second := crash{ledger: ledger{fates: at.promised}, clock: first.clock}
		second.run(t, at.killed, func(e engine.Engine) { second.push(t, e, "fill-again") })
		seconds += len(second.ends)
		second.holds(t)
	}
	if len(first.ends) < 2 || seconds == 0 {
		t.Errorf("%d logs, %d operations of the next process", len(first.ends), seconds)
	}
}
