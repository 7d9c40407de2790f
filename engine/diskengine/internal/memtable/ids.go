package memtable

import "unsafe"

// ids finds entries by their ids. New entries have ids that follow each other, and a place in
// a table. Entries that were moved here from sstables or other memtables are in an index.
type ids struct {
	pool   *pool
	base   uint64          // the first id of the table
	parts  []*[partIDs]ref // the table
	memory [][]byte        // of parts
	others index           // its dir is nil while there are none
}

const partIDs = chunkSize / 4

func newIDs(p *pool) ids { return ids{pool: p} }

// place returns the place of an id in the table; nil: it has none.
func (x *ids) place(id uint64) *ref {
	i := id - x.base
	if n := i / partIDs; n < uint64(len(x.parts)) {
		return &x.parts[n][i%partIDs]
	}
	return nil
}

// find returns the entry with an id, or 0.
func (x *ids) find(id uint64, a *arena) ref {
	if p := x.place(id); p != nil && *p != 0 {
		return *p
	}
	if x.others.dir == nil {
		return 0
	}
	return x.others.find(hashID(id), func(r ref) bool { return a.at(r).id == id })
}

// extend makes a place for a new id in the table, if it is about the next one.
func (x *ids) extend(id uint64) {
	if len(x.parts) == 0 {
		x.base = id
	}
	if (id-x.base)/partIDs != uint64(len(x.parts)) {
		return
	}
	b := x.pool.get(true)
	x.memory = append(x.memory, b)
	x.parts = append(x.parts, (*[partIDs]ref)(unsafe.Pointer(unsafe.SliceData(b))))
}

// insert adds an id that is not there.
func (x *ids) insert(id uint64, r ref) {
	if p := x.place(id); p != nil {
		*p = r
		return
	}
	if x.others.dir == nil {
		x.others = newIndex(x.pool)
	}
	x.others.insert(hashID(id), r)
}

// remove removes an id that is there.
func (x *ids) remove(id uint64, r ref) {
	if p := x.place(id); p != nil && *p == r {
		*p = 0
		return
	}
	x.others.remove(hashID(id), r)
}

func (x *ids) close() {
	x.pool.put(x.memory...)
	if x.others.dir != nil {
		x.others.close()
	}
	*x = ids{}
}
