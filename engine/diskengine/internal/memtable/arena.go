package memtable

import (
	"math/bits"
	"unsafe"
)

// ref names a slot of an arena: its chunk and, in 16 bytes, its place there. 0 is none.
type ref uint32

// Long is the number of bytes beyond which a value has memory of its own. The bytes there do
// not change, and stay until Trim, even if the entry is gone.
const Long = chunkSize

const (
	granule   = 16
	refBits   = 14 // chunkSize / granule
	minSlot   = 64
	maxSlot   = Long
	lowSlot   = 512
	lowSteps  = (lowSlot-minSlot)/granule + 1
	highSlot  = 64 << 10
	highSteps = 8 // from one power of two to the next
	parts     = 3 // slots larger than highSlot are a third, a half or all of a chunk
	wholes    = lowSteps + highSteps*7
	classes   = wholes + parts
)

// arena has the entries of a memtable, in chunks with slots of one size each. A freed slot is
// used again by an entry of about its size, or by any once its chunk is empty. An entry larger
// than the largest slot has memory of its own.
type arena struct {
	pool   *pool
	chunks []chunk // the first is not used, so that 0 means none
	free   []uint32
	room   [classes]uint32 // a chunk that has room; 0: none

	large     []large
	largeFree []uint32
}

// large is the memory of one entry. Its key and value begin at from.
type large struct {
	mem  []byte
	from int
}

type chunk struct {
	mem        []byte // nil: not in use
	class      uint8
	used       uint32
	begun      uint32 // slots that were ever used
	freed      uint32 // one more than the place of the slot freed last; 0: none
	next, prev uint32 // in the list of chunks of the class that have room; 0: none
}

func newArena(p *pool) arena { return arena{pool: p, chunks: make([]chunk, 1)} }

// classOf is the class of the smallest slots that have so many bytes, at most maxSlot.
func classOf(size int) int {
	if size <= lowSlot {
		return (max(size, minSlot) - minSlot + granule - 1) / granule
	}
	if size > highSlot {
		return classes - chunkSize/((size+granule-1)/granule*granule)
	}
	e := bits.Len(uint(size-1)) - 1
	return lowSteps + (e-9)*highSteps + (size-1-1<<e)>>(e-3)
}

// slotSize is how large the slots of a class are.
func slotSize(class int) int {
	if class < lowSteps {
		return minSlot + class*granule
	}
	if class >= wholes {
		return chunkSize / (classes - class) / granule * granule
	}
	e, k := 9+(class-lowSteps)/highSteps, (class-lowSteps)%highSteps
	return 1<<e + (k+1)<<(e-3)
}

func (a *arena) slot(r ref) []byte {
	return a.chunks[r>>refBits].mem[int(r&(1<<refBits-1))*granule:]
}

// at returns the header of an entry. Chunks are at multiples of a granule, so it is aligned.
func (a *arena) at(r ref) *header {
	return (*header)(unsafe.Pointer(unsafe.SliceData(a.slot(r))))
}

// bytes returns the key and the value of an entry.
func (a *arena) bytes(r ref, h *header) (key, value []byte) {
	b := a.payload(r, h)
	k := int(h.key)
	return b[:k:k], b[k:len(b):len(b)]
}

func (a *arena) payload(r ref, h *header) []byte {
	if h.large != 0 {
		l := &a.large[h.large-1]
		return l.mem[l.from:][:int(h.key)+int(h.value)]
	}
	return a.slot(r)[headerSize:][:int(h.key)+int(h.value)]
}

// take copies the key and the value of an entry to a new slot. The caller fills in the rest of
// the header.
func (a *arena) take(e *Entry) (ref, *header) {
	n := len(e.Key) + len(e.Value) + len(e.Tail)
	size, place := headerSize+n, uint32(0)
	copied := false // the tail is there already
	if size > maxSlot {
		size = headerSize
		var l large
		if l, copied = e.Ahead.take(len(e.Key) + len(e.Value)); !copied {
			l = large{mem: a.pool.takeLarge(n)}
		}
		place = a.keepLarge(l)
	}
	class := classOf(size)
	r := a.takeSlot(class)
	h := a.at(r)
	*h = header{class: uint8(class), key: uint16(len(e.Key)), value: uint32(len(e.Value) + len(e.Tail)), large: place}
	b := a.payload(r, h)
	at := copy(b, e.Key)
	at += copy(b[at:], e.Value)
	if !copied {
		copy(b[at:], e.Tail)
	}
	return r, h
}

// fits reports whether the key and the value of an entry fit into the slot of this one.
func (h *header) fits(e *Entry) bool {
	size := headerSize + len(e.Key) + len(e.Value) + len(e.Tail)
	return h.large == 0 && size <= maxSlot && classOf(size) == int(h.class)
}

func (a *arena) takeSlot(class int) ref {
	n := a.room[class]
	if n == 0 {
		n = a.newChunk(class)
	}
	c := &a.chunks[n]
	size := slotSize(class)
	at := c.freed
	if at != 0 {
		at--
		c.freed = *a.link(n, at)
	} else {
		at = c.begun * uint32(size/granule)
		c.begun++
	}
	if c.used++; int(c.used) == chunkSize/size {
		a.unlink(n)
	}
	return ref(n<<refBits | at)
}

// link is where a freed slot names the one freed before it.
func (a *arena) link(chunk, at uint32) *uint32 {
	return (*uint32)(unsafe.Pointer(&a.chunks[chunk].mem[at*granule]))
}

// drop frees the slot of an entry.
func (a *arena) drop(r ref) {
	if h := a.at(r); h.large != 0 {
		a.pool.freeLarge(a.large[h.large-1].mem)
		a.large[h.large-1] = large{}
		a.largeFree = append(a.largeFree, h.large)
	}
	n, at := uint32(r>>refBits), uint32(r&(1<<refBits-1))
	c := &a.chunks[n]
	*a.link(n, at) = c.freed
	c.freed = at + 1
	if int(c.used) == chunkSize/slotSize(int(c.class)) {
		a.linkRoom(n)
	}
	if c.used--; c.used == 0 {
		a.unlink(n)
		a.pool.put(c.mem)
		*c = chunk{}
		a.free = append(a.free, n)
	}
}

func (a *arena) newChunk(class int) uint32 {
	var n uint32
	if k := len(a.free); k > 0 {
		n, a.free = a.free[k-1], a.free[:k-1]
	} else {
		n = uint32(len(a.chunks))
		a.chunks = append(a.chunks, chunk{})
	}
	a.chunks[n] = chunk{mem: a.pool.get(false), class: uint8(class)}
	a.linkRoom(n)
	return n
}

func (a *arena) linkRoom(n uint32) {
	c := &a.chunks[n]
	first := &a.room[c.class]
	c.next, c.prev = *first, 0
	if *first != 0 {
		a.chunks[*first].prev = n
	}
	*first = n
}

func (a *arena) unlink(n uint32) {
	c := &a.chunks[n]
	if c.prev != 0 {
		a.chunks[c.prev].next = c.next
	} else {
		a.room[c.class] = c.next
	}
	if c.next != 0 {
		a.chunks[c.next].prev = c.prev
	}
	c.next, c.prev = 0, 0
}

// keepLarge keeps the memory of a large entry, and returns one more than its index in large.
func (a *arena) keepLarge(l large) uint32 {
	if k := len(a.largeFree); k > 0 {
		i := a.largeFree[k-1]
		a.largeFree = a.largeFree[:k-1]
		a.large[i-1] = l
		return i
	}
	a.large = append(a.large, l)
	return uint32(len(a.large))
}

// close gives all memory back.
func (a *arena) close() {
	for i := range a.chunks {
		if b := a.chunks[i].mem; b != nil {
			a.pool.put(b)
		}
	}
	for _, l := range a.large {
		if l.mem != nil {
			a.pool.freeLarge(l.mem)
		}
	}
	*a = arena{}
}
