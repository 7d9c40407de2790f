package recent

import "unsafe"

// The indexes in which an entry may stand.
const (
	byKey = iota
	byID
	indexes
)

// heads are the first of the chains of some buckets.
type heads [chunkSize / 4]ref

// index finds entries by a hash: buckets of chains that go through the headers. It grows by one
// bucket with each entry (linear hashing), so that no insertion waits for all to be moved.
type index struct {
	which   int
	arena   *arena
	parts   []*heads
	memory  [][]byte // of parts
	n       int
	buckets uint32
	low     uint32 // the largest power of two up to buckets
}

func (x *index) open(a *arena, which int) {
	x.arena, x.which = a, which
	x.extend()
	x.buckets, x.low = uint32(len(heads{})), uint32(len(heads{}))
}

func (x *index) extend() {
	b := x.arena.pool.get(true)
	x.memory = append(x.memory, b)
	x.parts = append(x.parts, (*heads)(unsafe.Pointer(unsafe.SliceData(b))))
}

// head is where the chain of a hash begins.
func (x *index) head(hash uint32) *ref {
	b := hash & (2*x.low - 1)
	if b >= x.buckets {
		b &= x.low - 1
	}
	return x.bucket(b)
}

func (x *index) bucket(b uint32) *ref {
	return &x.parts[b/uint32(len(heads{}))][b%uint32(len(heads{}))]
}

func (x *index) hash(h *header) uint32 {
	if x.which == byID {
		return hashID(h.id)
	}
	return h.hash
}

func (x *index) insert(r ref, h *header) {
	head := x.head(x.hash(h))
	h.next[x.which], *head = *head, r
	if x.n++; x.n > int(x.buckets) && x.buckets < 1<<31 {
		x.split()
	}
}

// split adds a bucket, for half of what is in another.
func (x *index) split() {
	if int(x.buckets) == len(x.parts)*len(heads{}) {
		x.extend()
	}
	bit := x.low
	from, to := x.bucket(x.buckets-bit), x.bucket(x.buckets)
	if x.buckets++; x.buckets == 2*x.low {
		x.low = x.buckets
	}
	for r := *from; r != 0; {
		h := x.arena.at(r)
		next := h.next[x.which]
		if x.hash(h)&bit != 0 {
			*from, h.next[x.which] = next, *to
			*to = r
		} else {
			from = &h.next[x.which]
		}
		r = next
	}
}

func (x *index) remove(r ref, h *header) {
	p := x.head(x.hash(h))
	for *p != r {
		p = &x.arena.at(*p).next[x.which]
	}
	*p = h.next[x.which]
	x.n--
}

func (x *index) close(p *pool) {
	p.put(x.memory...)
	*x = index{}
}
