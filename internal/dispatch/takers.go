package dispatch

import "github.com/tarryhq/tarry/engine"

// leftover are leases of one worker that the shares of a want have no room for.
type leftover struct {
	want   int
	leases []engine.Lease
}

// wantOf returns the index of the want for a subscription among those from first on, where it
// is to be added if there is none.
func (c *call) wantOf(first int, s *Subscription) int {
	w := first
	for w < len(c.wants) && !s.sameOptions(&c.wants[w]) {
		w++
	}
	return w
}

// addTaker makes a want ask for n more leases, for a worker.
func addTaker(w *engine.Want, worker string, n int) {
	switch last := len(w.Takers) - 1; {
	case w.Max == 0:
		w.Worker = worker
	case last < 0 && worker != w.Worker:
		w.Takers = []engine.Taker{{Worker: w.Worker, Max: w.Max}, {Worker: worker, Max: n}}
	case last >= 0 && worker == w.Takers[last].Worker:
		w.Takers[last].Max += n
	case last >= 0:
		w.Takers = append(w.Takers, engine.Taker{Worker: worker, Max: n})
	}
	w.Max += n
}

// workerOf returns the name in the leases of a subscription; "": the engine knows no names.
func (d *Dispatcher) workerOf(s *Subscription) string {
	if !d.caps.Workers {
		return ""
	}
	return s.Worker
}

// cut removes the leases of a worker at the beginning of ls, at most n, and returns them.
func cut(ls *[]engine.Lease, worker string, n int) []engine.Lease {
	all, i := *ls, 0
	for i < min(n, len(all)) && all[i].Worker == worker {
		i++
	}
	*ls = all[i:]
	return all[:i:i]
}
