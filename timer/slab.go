package timer

import "math/rand/v2"

const (
	// A chunk is small, because a single entry keeps it from being freed: the few
	// entries that survive a spike must not keep the spike's memory.
	chunkBits = 4
	chunkLen  = 1 << chunkBits
	chunkMask = chunkLen - 1

	emptyMost  = 64      // empty chunks kept for reuse
	maxEntries = 1 << 31 // the top bit of an index marks the head of a list
)

// links chains an entry into a list, by index.
type links struct {
	next, prev uint32
}

// entry takes 32 bytes with an 8-byte T, and 24 with a 4-byte one. It has no
// pointers if T has none, and the garbage collector then never looks into a chunk.
type entry[T any] struct {
	due uint64 // in the units of the owner; ordered
	links
	gen   uint32 // 0 while free
	value T
}

// chunk records which entries of an array are in use.
type chunk struct {
	free       uint16 // head of the list of freed entries, plus one; chained by next
	used       uint16
	begun      uint16 // how many were ever used
	prev, next int32  // list of the chunks with room, by number plus one
}

// slab hands out entries by index. Indexes are dense, and entries never move.
// Empty chunks are freed, except a few that are kept for reuse.
type slab[T any] struct {
	entries []*[chunkLen]entry[T] // by chunk; nil: given back
	chunks  []chunk
	room    int32   // first chunk with room, plus one
	gone    []int32 // numbers of the chunks given back
	empty   int     // chunks held without an entry in use
	gen     uint32  // the last generation given out
	len     int
}

// newSlab returns a slab. Its generations begin at a random number, so that the
// handles of one structure are stale in another.
func newSlab[T any]() slab[T] { return slab[T]{gen: rand.Uint32()} }

func (s *slab[T]) at(i uint32) *entry[T] { return &s.entries[i>>chunkBits][i&chunkMask] }

// find returns the entry of a handle, or nil when the handle is stale.
func (s *slab[T]) find(h Handle) *entry[T] {
	i, gen := h.index(), h.gen()
	if gen == 0 || int(i>>chunkBits) >= len(s.entries) {
		return nil
	}
	entries := s.entries[i>>chunkBits]
	if entries == nil {
		return nil
	}
	e := &entries[i&chunkMask]
	if e.gen != gen {
		return nil
	}
	return e
}

// take returns an entry with its value, due and generation set.
func (s *slab[T]) take(due uint64, v T) (uint32, *entry[T]) {
	if s.room == 0 {
		s.grow()
	}
	n := s.room - 1
	c, entries := &s.chunks[n], s.entries[n]
	if c.used == 0 {
		s.empty--
	}
	at := uint32(c.begun)
	if c.free != 0 {
		at = uint32(c.free - 1)
		c.free = uint16(entries[at&chunkMask].next)
	} else {
		c.begun++
	}
	c.used++
	if c.used == chunkLen {
		s.unlist(n)
	}
	s.len++
	s.gen++
	if s.gen == 0 {
		s.gen = 1
	}
	e := &entries[at&chunkMask]
	e.value, e.due, e.gen = v, due, s.gen
	return uint32(n)<<chunkBits | at, e
}

// drop frees the entry i, which is in use and in no list.
func (s *slab[T]) drop(i uint32) {
	n := int32(i >> chunkBits)
	c, e := &s.chunks[n], s.at(i)
	var zero T
	e.value, e.gen = zero, 0
	e.next = uint32(c.free)
	c.free = uint16(i&chunkMask + 1)
	if c.used == chunkLen {
		s.list(n)
	}
	c.used--
	s.len--
	if c.used == 0 {
		s.emptied(n)
	}
}

// emptied frees an empty chunk, or keeps it while few are empty, so that a load
// that varies a little allocates nothing.
func (s *slab[T]) emptied(n int32) {
	if s.empty < emptyMost {
		s.empty++
		return
	}
	s.unlist(n)
	s.entries[n], s.chunks[n] = nil, chunk{}
	s.gone = append(s.gone, n)
	if s.len == 0 && len(s.chunks) > 8*emptyMost {
		s.shed()
	}
}

// shed frees the tables too, when nothing is left in a structure that was big.
// Generations go on, so that old handles stay stale.
func (s *slab[T]) shed() {
	*s = slab[T]{gen: s.gen}
}

func (s *slab[T]) grow() {
	n := int32(len(s.chunks))
	if len(s.gone) > 0 {
		n = s.gone[len(s.gone)-1]
		s.gone = s.gone[:len(s.gone)-1]
	} else {
		if n >= maxEntries>>chunkBits {
			panic("timer: more than 2^31 entries")
		}
		s.entries, s.chunks = append(s.entries, nil), append(s.chunks, chunk{})
	}
	s.entries[n] = new([chunkLen]entry[T])
	s.empty++
	s.list(n)
}

// list puts the chunk first among those with room. So the chunk in which an entry
// was freed last is filled first, since it is still in the cache, and the others
// can become empty.
func (s *slab[T]) list(n int32) {
	c := &s.chunks[n]
	c.prev, c.next = 0, s.room
	if s.room != 0 {
		s.chunks[s.room-1].prev = n + 1
	}
	s.room = n + 1
}

func (s *slab[T]) unlist(n int32) {
	c := &s.chunks[n]
	if c.prev != 0 {
		s.chunks[c.prev-1].next = c.next
	} else {
		s.room = c.next
	}
	if c.next != 0 {
		s.chunks[c.next-1].prev = c.prev
	}
	c.prev, c.next = 0, 0
}
