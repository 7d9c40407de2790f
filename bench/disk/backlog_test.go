//go:build linux

package disk

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/scenario"
)

// processes is how many push to the store of BenchmarkBacklog, one after the other.
const processes = 4

// BenchmarkBacklog has processes open a store, push their part of what is to pend, and close it.
// It measures until merges have caught up after the last, and the processor time of single pushes,
// each time beside those to an empty store.
func BenchmarkBacklog(b *testing.B) {
	scenario.Once(b)
	n := *scenario.Pending
	s, in := measuredStore(), b.TempDir()
	soonest := time.Now().Add(24 * time.Hour)
	first := pending + n
	single := func(p *process) float64 {
		a := p.ask(b, command{Do: "push", From: first, To: first + *pushes, Soonest: soonest, Spread: 48 * time.Hour, Clients: scenario.Clients, Batch: 1})
		first += *pushes
		return a.CPU
	}
	empty := func() float64 {
		p := start(b, s, "obey", 1, "-dir", b.TempDir())
		defer p.kill()
		return single(p)
	}
	for i := range processes {
		b.Run("impl="+s.name+"/step=push", func(b *testing.B) {
			p := start(b, s, "obey", 1, "-dir", in)
			a := p.ask(b, command{Do: "push", From: pending + i*n/processes, To: pending + (i+1)*n/processes,
				Soonest: soonest, Spread: 48 * time.Hour, Clients: fewClients, Batch: batchSize})
			scenario.Report(b, a.Seconds, "s")
			scenario.Report(b, single(p)/empty(), "cpu-x")
			p.figures(b) // it has closed the store
		})
	}
	b.Run("impl="+s.name+"/step=rest", func(b *testing.B) {
		p := start(b, s, "obey", 1, "-dir", in)
		scenario.Report(b, single(p)/empty(), "cpu-x")
		a := p.ask(b, command{Do: "rest"})
		scenario.Report(b, a.Seconds-restFor.Seconds(), "s")
		scenario.Report(b, a.CPU, "cpu-s")
		tables, err := filepath.Glob(filepath.Join(in, "*", "*.run"))
		must(b, err)
		scenario.Report(b, float64(len(tables)), "sstables")
		scenario.Report(b, single(p)/empty(), "then-cpu-x")
	})
}
