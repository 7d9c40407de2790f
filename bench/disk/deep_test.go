//go:build linux

package disk

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// pending is the number of the first message that pends while others are late.
const pending = 1 << 32

// BenchmarkDeep has messages pend, kills their process in the middle of further pushes,
// opens the store again, and measures what it takes while nothing happens, and lateness
// beside pushes.
func BenchmarkDeep(b *testing.B) {
	scenario.Once(b)
	n := *scenario.Pending
	demand(b, os.TempDir(), room(n))
	s, in := measuredStore(), b.TempDir()
	b.Run("impl="+s.name+"/step=fill", func(b *testing.B) { fill(b, s, in, n).report(b) })
	b.Run("impl="+s.name+"/step=reopen", func(b *testing.B) {
		report(b, start(b, s, "reopen", 1, "-dir", in, "-first", strconv.Itoa(pending),
			"-pending", strconv.Itoa(n), "-span", lateFor.String()).figures(b))
	})
	for range *turns {
		b.Run("impl="+s.name+"/step=late", func(b *testing.B) {
			report(b, start(b, s, "late", 1, "-dir", in,
				"-rate", "5000", "-beside", "20000", "-span", lateFor.String()).figures(b))
		})
	}
}

// fill has n messages pend in a store, whose process ends as by kill -9 while it writes.
func fill(b *testing.B, s system, in string, n int) *sums {
	p := start(b, s, "obey", 1, "-dir", in)
	a := p.ask(b, command{Do: "push", From: pending, To: pending + n,
		Soonest: time.Now().Add(24 * time.Hour), Spread: 48 * time.Hour, Clients: scenario.Clients, Batch: 500})
	p.ask(b, command{Do: "more"})
	p.kill()
	filled := new(sums)
	filled.add(n, a, 0, false)
	return filled
}
