//go:build linux

package disk

import (
	"context"
	"flag"
	"runtime"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/diskengine"
)

var (
	store    = flag.String("store", "", "what BenchmarkSystem measures: the URL of a store with DIR for its directory, bare:DIR, or behind:DIR")
	dir      = flag.String("dir", "", "the directory of the store where it is to be kept; otherwise each has one of its own")
	clients  = flag.Int("clients", scenario.Clients, "who push at the same time")
	batch    = flag.Int("batch", 1, "messages they push a call")
	first    = flag.Int("first", 0, "number of the first message that pends in the store of -dir")
	countAll = flag.Bool("count", false, "have reopen look for each message, not for a few")
)

// heapFloor is how much the heap grows at least between two collections, as that of the command tarry
// does: see docs/decisions/runtime.md.
const heapFloor = 16 << 20

// BenchmarkSystem measures one system; see the package comment.
func BenchmarkSystem(b *testing.B) {
	if *store == "" {
		b.Skip("-store names no system")
	}
	floor := make([]byte, heapFloor)
	defer runtime.KeepAlive(floor)
	b.Run("push", measured(func(b *testing.B, open scenario.Open) { scenario.PushBy(b, open, *clients, *batch) }))
	b.Run("cancel", measured(scenario.Cancel))
	b.Run("burst", measured(scenario.Burst))
	b.Run("instant", measured(instant))
	b.Run("lateness", measured(scenario.Lateness))
	b.Run("steady", measured(scenario.Steady))
	b.Run("churn", measured(func(b *testing.B, open scenario.Open) { scenario.Churn(b, open, *clients, *batch) }))
	b.Run("obey", obey)
	b.Run("reopen", reopen)
	b.Run("late", late)
}

// measured returns a benchmark that runs a scenario, and reports what none does: memory,
// and what was written of each of b.N messages.
func measured(run func(*testing.B, scenario.Open)) func(*testing.B) {
	return func(b *testing.B) {
		var m *meter
		run(b, func(b *testing.B) scenario.System {
			in := b.TempDir()
			s, err := openIn(b.Context(), in)
			s = scenario.Warm(b, s, err)
			m = meterOf(b, in)
			return s
		})
		m.report(b, b.N)
		reportMemory(b)
	}
}

func openIn(ctx context.Context, dir string) (scenario.System, error) {
	switch *store {
	case "bare:DIR":
		return openBare(dir)
	case "behind:DIR":
		return openBehind(dir)
	}
	c, err := openClient(ctx, dir)
	if err != nil {
		return nil, err
	}
	return scenario.Tarry(c), nil
}

// keeps reports whether the system keeps what it is given, so that it matters how much it takes.
func keeps() bool { return *store != "bare:DIR" && *store != "behind:DIR" }

func openClient(ctx context.Context, dir string) (*tarry.Client, error) {
	return tarry.Open(ctx, strings.ReplaceAll(*store, "DIR", dir), nil)
}
