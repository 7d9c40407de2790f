package timer

const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits // 32 KiB of entries of an 8-byte T, exactly a size class of the allocator
	chunkMask = chunkLen - 1
	chunkMin  = 16 // room for this many in the first chunk of a small structure

	maxEntries = 1 << 31 // the top bit of an index marks the head of a list
)

// links chains an entry into a list, by index.
type links struct {
	next, prev uint32
}

// entry is 32 bytes with an 8-byte T, and free of pointers when T is: the
// collector then never looks into a chunk.
type entry[T any] struct {
	value T
	due   uint64 // in the units of the owner; ordered
	links
	gen uint32 // 0 while free
}

// chunk holds up to chunkLen entries. It is given back when all are free.
type chunk[T any] struct {
	entries    []entry[T] // length: how many were ever used
	free       uint32     // head of the list of freed entries, plus one; chained by next
	used       uint32
	prev, next int32 // list of the chunks with room, by number plus one
}

// slab gives out entries by index. Indexes are dense, entries never move
// (only the very first chunk does, while it grows), and a chunk without
// entries goes back to the collector, except one kept for the next need.
type slab[T any] struct {
	chunks []chunk[T]
	room   int32   // first chunk with room, plus one
	gone   []int32 // numbers of the chunks given back
	empty  int     // chunks held without an entry in use
	gen    uint32  // the last generation given out
	len    int
}

func (s *slab[T]) at(i uint32) *entry[T] {
	return &s.chunks[i>>chunkBits].entries[i&chunkMask]
}

// find returns the entry of a handle, or nil when the handle is stale.
func (s *slab[T]) find(h Handle) *entry[T] {
	i, gen := h.index(), h.gen()
	if gen == 0 || int(i>>chunkBits) >= len(s.chunks) {
		return nil
	}
	entries := s.chunks[i>>chunkBits].entries
	if int(i&chunkMask) >= len(entries) {
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
	c := &s.chunks[n]
	if c.used == 0 {
		s.empty--
	}
	var at uint32
	if c.free != 0 {
		at = c.free - 1
		c.free = c.entries[at].next
	} else {
		at = uint32(len(c.entries))
		if len(c.entries) == cap(c.entries) {
			c.entries = append(make([]entry[T], 0, 4*cap(c.entries)), c.entries...)
		}
		c.entries = c.entries[:at+1]
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
	e := &c.entries[at]
	e.value, e.due, e.gen = v, due, s.gen
	return uint32(n)<<chunkBits | at, e
}

// drop frees the entry i, which is in use and in no list.
func (s *slab[T]) drop(i uint32) {
	n := int32(i >> chunkBits)
	c := &s.chunks[n]
	e := &c.entries[i&chunkMask]
	var zero T
	e.value, e.gen = zero, 0
	e.next = c.free
	c.free = i&chunkMask + 1
	if c.used == chunkLen {
		s.list(n)
	}
	c.used--
	s.len--
	if c.used == 0 {
		s.emptied(n)
	}
}

// emptied gives the chunk back, or keeps it when it is the only empty one, so
// that a load that swings around a chunk's end allocates nothing.
func (s *slab[T]) emptied(n int32) {
	if s.empty == 0 {
		s.empty++
		return
	}
	s.unlist(n)
	s.chunks[n] = chunk[T]{}
	s.gone = append(s.gone, n)
	if s.len == 0 && len(s.chunks) > 8 {
		s.shed()
	}
}

// shed drops the tables too when nothing is left in a structure that was big.
// Generations go on, so old handles stay stale.
func (s *slab[T]) shed() {
	*s = slab[T]{gen: s.gen}
}

func (s *slab[T]) grow() {
	n := int32(len(s.chunks))
	size := chunkLen
	switch {
	case len(s.gone) > 0:
		n = s.gone[len(s.gone)-1]
		s.gone = s.gone[:len(s.gone)-1]
	case n == 0:
		size = chunkMin
		fallthrough
	default:
		if n >= maxEntries>>chunkBits {
			panic("timer: more than 2^31 entries")
		}
		s.chunks = append(s.chunks, chunk[T]{})
	}
	s.chunks[n].entries = make([]entry[T], 0, size)
	s.empty++
	s.list(n)
}

// list puts the chunk first among those with room: what was freed last is
// filled first, being in the cache still, and the others can drain.
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
