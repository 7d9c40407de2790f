package memtable

import (
	"fmt"
	"testing"
)

// Leases name their workers, many or few, and names that no lease has any more do not pile up.
func TestWorkersOfLeases(t *testing.T) {
	x := NewLeases(&Config{OnHeap: true}, 1<<20)
	defer x.Close()
	name := func(id uint64) string { return []string{"", "w-1", fmt.Sprint("w-", id)}[id%3] }
	const n = 3 * spareWorkers
	for round := range uint64(3) {
		for id := uint64(1); id <= n; id++ {
			l := x.Add(&Lease{ID: id, Queue: 1, Deadline: int64(id)})
			x.SetWorker(l, "another")
			x.SetWorker(l, name(id+round))
		}
		for id := uint64(1); id <= n; id++ {
			l := x.ByID(id)
			if got := x.Worker(l); got != name(id+round) {
				t.Fatalf("the worker of %d is %q, not %q", id, got, name(id+round))
			}
			x.Remove(l)
		}
	}
	for id := uint64(1); id <= 10*spareWorkers; id++ {
		l := x.Add(&Lease{ID: id, Queue: 1})
		x.SetWorker(l, fmt.Sprint("once ", id))
		x.Remove(l)
	}
	if w := &x.workers; len(w.names) > spareWorkers+3 || len(w.numbers) != len(w.names) {
		t.Errorf("%d names have %d numbers", len(w.names), len(w.numbers))
	}
	for id := uint64(1); id <= 10*spareWorkers; id++ { // names come and go beside those of running and of lapsed leases
		l := x.Add(&Lease{ID: id, Queue: 1})
		x.SetWorker(l, fmt.Sprint("of ", id))
		if id > 6 {
			x.Remove(l)
		} else if id > 3 {
			x.Lapse(l, 1)
		}
	}
	for id := uint64(1); id <= 6; id++ {
		if got := x.Worker(x.ByID(id)); got != fmt.Sprint("of ", id) {
			t.Errorf("the worker of %d is %q", id, got)
		}
	}
}
