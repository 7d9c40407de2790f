package memtable

import "strings"

// workers has the names of the workers of leases, each once.
type workers struct {
	numbers map[string]uint32
	names   []string // by number less one
	last    uint32   // the number that was taken last
}

// spareWorkers is how many names there may be, beside two for each lease, before those that no
// lease has are forgotten: most workers come back.
const spareWorkers = 1000

// name returns the name with a number; 0: none.
func (w *workers) name(number uint32) string {
	if number == 0 {
		return ""
	}
	return w.names[number-1]
}

// take returns the number of a name.
func (w *workers) take(name string) uint32 {
	switch {
	case name == "":
		return 0
	case w.last != 0 && w.names[w.last-1] == name:
		return w.last
	}
	n, ok := w.numbers[name]
	if !ok {
		if w.numbers == nil {
			w.numbers = make(map[string]uint32)
		}
		name = strings.Clone(name)
		w.names = append(w.names, name)
		n = uint32(len(w.names))
		w.numbers[name] = n
	}
	w.last = n
	return n
}

// forgetWorkers forgets the names that no lease has.
func (x *Leases) forgetWorkers() {
	old := x.workers
	x.workers = workers{}
	for _, o := range []*order{&x.ends, &x.lapsed} {
		for c := o.seek(item{at: First.At}); c.item() != nil; c.next() {
			l := x.slot(ref(c.item().ref))
			l.worker = x.workers.take(old.name(l.worker))
		}
	}
}
