package diskengine_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// simulation is a harness on simulated disks.
func simulation() (enginetest.Harness, *machines) {
	ms := &machines{clock: enginetest.NewClock()}
	chore := func(name string, do func(e *diskengine.Engine, ctx context.Context) error) enginetest.Chore {
		return enginetest.Chore{Name: name, Do: func(e engine.Engine) error { return do(e.(*diskengine.Engine), context.Background()) }}
	}
	still := func(name string, do, within func(e *diskengine.Engine, ctx context.Context) error) enginetest.Chore {
		return chore(name, func(e *diskengine.Engine, ctx context.Context) error {
			if ms.of(e).still.Load() {
				return within(e, ctx)
			}
			return do(e, ctx)
		})
	}
	h := enginetest.Harness{
		Clock: ms.clock, Lasting: func(e engine.Engine) bool { return ms.of(e).killed },
		Open:   func(t *testing.T) engine.Engine { ms.engines.Clear(); return ms.open(t, ms.machine()) },
		Reopen: ms.reopen, Crash: ms.crash,
		Sound:    func(e engine.Engine) error { return e.(*diskengine.Engine).Sound() },
		Unlisted: func(e engine.Engine) bool { return e.(*diskengine.Engine).Unlisted() },
		Seed:     func(seed uint64) { ms.seed = seed },
		Turn: func(e engine.Engine) {
			if m := ms.of(e); m.exact {
				e.(*diskengine.Engine).Turn()
			}
		},
		Last: func(e engine.Engine) string {
			m, each := ms.of(e), "others each time"
			if m.exact {
				each = "the same each time"
			}
			if os.Getenv("TARRY_SIMULATE") != "" {
				each += ", with TARRY_SIMULATE=1s beside the seed"
			}
			return fmt.Sprintf("the last calls of the disk, of %s, %s:\n%s", m.tape.Sum(), each, m.tape)
		},
		Meanwhile: func(e engine.Engine, what string, do func() error, fn func(string)) error {
			m := ms.of(e)
			if what != "call" {
				return m.during(fn, do)
			}
			return e.(*diskengine.Engine).Still(func() error {
				m.still.Store(true)
				defer m.still.Store(false)
				return m.during(fn, do)
			})
		},
		Faults: []enginetest.Fault{
			ms.fault("the power goes", errPower), ms.fault("EIO", syscall.EIO), ms.fault("ENOSPC", syscall.ENOSPC),
			ms.fault("EMFILE", syscall.EMFILE), ms.fault("a short write", &disktest.Short{Err: syscall.EIO}),
			ms.fault("a call is carried out and fails", &disktest.Late{Err: syscall.EIO}), ms.leaving(), ms.scarcity(),
		},
		Chores: []enginetest.Chore{
			chore("seal", (*diskengine.Engine).Seal),
			still("flush", (*diskengine.Engine).Flush, (*diskengine.Engine).FlushStill),
			still("merge", (*diskengine.Engine).Merge, (*diskengine.Engine).MergeStill),
			chore("backup", ms.backUp),
			still("tidy", func(e *diskengine.Engine, _ context.Context) error { return e.ForgetIdle() }, (*diskengine.Engine).ForgetIdleStill),
		},
	}
	return h, ms
}

// span is how long simulations of other histories go on each time, as make simulate says; 0: some
// that are always the same are played.
func span(t *testing.T) time.Duration {
	s := os.Getenv("TARRY_SIMULATE")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("TARRY_SIMULATE: %v", err)
	}
	return d
}

// TestSimulation plays random histories of calls, flushes, merges, openings and crashes against the
// model, some with a loss of power or a fault of the disk in the midst of it.
func TestSimulation(t *testing.T) {
	large, d := 400, span(t)/2
	if d > 0 {
		large = 1500
	}
	for name, size := range map[string]struct{ steps, keys, histories int }{"small": {250, 4, 24}, "large": {large, 40, 6}} {
		t.Run(name, func(t *testing.T) {
			h, _ := simulation()
			h.Steps, h.Keys, h.Histories, h.Queues = size.steps, size.keys, size.histories, 5
			enginetest.Simulate(t, h, d)
		})
	}
}

// TestThrong has many callers at once work on simulated disks.
func TestThrong(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 4
	}
	began := time.Now()
	for n, d := 0, span(t); (n < rounds || time.Since(began) < d) && !t.Failed(); n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			h, ms := simulation()
			ms.free = true // many call at once
			enginetest.RunThrong(t, h)
		})
	}
}

// TestPowerLoss takes the power away before each call of the disk that changes something, in
// random histories, and looks at what is left of each.
func TestPowerLoss(t *testing.T) {
	h, ms := simulation()
	d := span(t)
	if ms.every = 7; d > 0 {
		ms.every = 1
	}
	h.Faults, h.Losses, h.Steps, h.Histories = nil, ms.losses, 120, 6
	enginetest.Simulate(t, h, d)
}
