package memtable

import "strings"

// workers has the names of the workers of leases, each once. Names that no lease has any more
// are kept for a while, as most workers come back, but at most spareWorkers of them.
type workers struct {
	numbers map[string]uint32
	of      []worker // by number less one
	free    []uint32 // numbers without a name
	spare   int      // names that no lease has
	last    uint32   // the number that was taken last
}

type worker struct {
	name   string
	leases int
}

const spareWorkers = 1000

// name returns the name with a number; 0: none.
func (w *workers) name(number uint32) string {
	if number == 0 {
		return ""
	}
	return w.of[number-1].name
}

// take returns the number of a name for one more lease.
func (w *workers) take(name string) uint32 {
	if name == "" {
		return 0
	}
	if w.last == 0 || w.of[w.last-1].name != name {
		n, ok := w.numbers[name]
		if !ok {
			n = w.add(strings.Clone(name))
		}
		w.last = n
	}
	x := &w.of[w.last-1]
	if x.leases == 0 {
		w.spare--
	}
	x.leases++
	return w.last
}

// add gives a name a number, which no lease has yet.
func (w *workers) add(name string) (number uint32) {
	if w.numbers == nil {
		w.numbers = make(map[string]uint32)
	}
	if n := len(w.free); n > 0 {
		number, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.of = append(w.of, worker{})
		number = uint32(len(w.of))
	}
	w.of[number-1].name = name
	w.numbers[name] = number
	w.spare++
	return number
}

// release says that a lease has a number no more.
func (w *workers) release(number uint32) {
	if number == 0 {
		return
	}
	x := &w.of[number-1]
	if x.leases--; x.leases > 0 {
		return
	}
	if w.spare++; w.spare > spareWorkers {
		w.sweep()
	}
}

// sweep forgets the names that no lease has.
func (w *workers) sweep() {
	for i := range w.of {
		if x := &w.of[i]; x.leases == 0 && x.name != "" {
			delete(w.numbers, x.name)
			*x = worker{}
			w.free = append(w.free, uint32(i+1))
		}
	}
	w.spare, w.last = 0, 0
}
