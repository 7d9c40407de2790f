package memtable

import "unsafe"

const (
	pageSlots  = 512
	chunkPages = chunkSize / (pageSlots * 8)
	maxLoad    = pageSlots * 7 / 8
)

// slot is an entry in a page: its hash and its ref; ref 0: none.
type slot struct {
	hash uint32
	ref  ref
}

// page is a small hash table with open addressing.
type page [pageSlots]slot

// index finds entries by a hash. It is pages, and a directory that leads from the first bits of a hash to its
// page (extendible hashing). A full page is divided in two, so no insertion waits for more than a page, and no
// entry is read for it.
type index struct {
	pool   *pool
	dir    []uint32 // numbers of pages, 1<<bits
	bits   uint
	pages  []pageInfo
	parts  []*[chunkPages]page
	memory [][]byte // of parts
	n      int
}

// pageInfo is what is known about a page, kept beside it.
type pageInfo struct {
	n    uint16
	bits uint8 // how many first bits of the hash all in the page share
}

func newIndex(p *pool) index {
	x := index{pool: p, dir: make([]uint32, 1)}
	x.newPage(0)
	return x
}

func (x *index) page(n uint32) *page { return &x.parts[n/chunkPages][n%chunkPages] }

func (x *index) newPage(bits uint8) uint32 {
	n := uint32(len(x.pages))
	if int(n) == len(x.parts)*chunkPages {
		b := x.pool.get(false)
		x.memory = append(x.memory, b)
		x.parts = append(x.parts, (*[chunkPages]page)(unsafe.Pointer(unsafe.SliceData(b))))
	}
	x.pages = append(x.pages, pageInfo{bits: bits})
	clear(x.page(n)[:])
	return n
}

// of returns the number of the page of a hash. A shift by 32 gives 0.
func (x *index) of(hash uint32) uint32 { return x.dir[hash>>(32-x.bits)] }

// find gives fn the entries with a hash until it returns true, and returns that one, or 0.
func (x *index) find(hash uint32, fn func(r ref) bool) ref {
	p := x.page(x.of(hash))
	for i := hash % pageSlots; p[i].ref != 0; i = (i + 1) % pageSlots {
		if p[i].hash == hash && fn(p[i].ref) {
			return p[i].ref
		}
	}
	return 0
}

func (x *index) insert(hash uint32, r ref) {
	x.n++
	n := x.of(hash)
	for x.pages[n].n >= maxLoad {
		x.divide(n, hash)
		n = x.of(hash)
	}
	x.pages[n].n++
	x.page(n).insert(slot{hash, r})
}

func (p *page) insert(s slot) {
	i := s.hash % pageSlots
	for p[i].ref != 0 {
		i = (i + 1) % pageSlots
	}
	p[i] = s
}

// divide divides the page n of a hash in two, by one bit more.
func (x *index) divide(n, hash uint32) {
	shared := uint(x.pages[n].bits)
	if shared == x.bits {
		dir := make([]uint32, 2*len(x.dir))
		for i, n := range x.dir {
			dir[2*i], dir[2*i+1] = n, n
		}
		x.dir, x.bits = dir, x.bits+1
	}
	m := x.newPage(uint8(shared + 1))
	x.pages[n].bits++
	same := 1 << (x.bits - shared) // places in the directory that lead here
	first := int(hash>>(32-shared)) * same
	for i := first + same/2; i < first+same; i++ {
		x.dir[i] = m
	}
	low, high := x.page(n), x.page(m)
	was := *low
	clear(low[:])
	for _, s := range was {
		switch {
		case s.ref == 0:
		case s.hash>>(31-shared)&1 == 0:
			low.insert(s)
		default:
			high.insert(s)
			x.pages[m].n++
		}
	}
	x.pages[n].n -= x.pages[m].n
}

// remove removes an entry that is there.
func (x *index) remove(hash uint32, r ref) {
	x.n--
	n := x.of(hash)
	p := x.page(n)
	i := hash % pageSlots
	for p[i].ref != r {
		i = (i + 1) % pageSlots
	}
	x.pages[n].n--
	// The following slots move up, unless one would come before the place of its hash.
	for k := (i + 1) % pageSlots; p[k].ref != 0; k = (k + 1) % pageSlots {
		if home := p[k].hash % pageSlots; (k-home)%pageSlots >= (k-i)%pageSlots {
			p[i] = p[k]
			i = k
		}
	}
	p[i] = slot{}
}

func (x *index) close() {
	x.pool.put(x.memory...)
	*x = index{}
}
