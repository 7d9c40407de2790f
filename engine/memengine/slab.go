package memengine

import "math/bits"

// slab stores values at fixed places. A place is a number, and 0 is none: a reference by
// place takes four bytes, and the garbage collector does not follow it.
//
// Values are in chunks. The first chunks are small, because most slabs hold little. The chunk
// freed last is filled first, so that the others can drain. All but a few empty chunks are
// released.
type slab[T any] struct {
	chunks []chunk[T]
	room   []uint32 // numbers of chunks that are not full
	spare  [][]T    // empty chunks, for reuse
	n      int

	// Most slabs have one chunk, so the first is in the slab itself.
	firstChunk [1]chunk[T]
	firstRoom  [1]uint32
}

type chunk[T any] struct {
	values []T    // nil: empty
	used   uint32 // a bit for each value
}

const (
	perChunk = 17 // messages fill a size class of 2 KiB
	small    = 2  // number of smaller chunks
	spares   = 16
	shedAt   = 1024 // chunks from which an empty slab drops its tables too
)

// take allocates a place, with a zero value.
func (s *slab[T]) take() (uint32, *T) {
	if s.chunks == nil {
		s.chunks, s.room = s.firstChunk[:0], s.firstRoom[:0]
	}
	if len(s.room) == 0 {
		s.room = append(s.room, uint32(len(s.chunks)))
		s.chunks = append(s.chunks, chunk[T]{})
	}
	last := len(s.room) - 1
	n := s.room[last]
	c := &s.chunks[n]
	if c.values == nil {
		c.values = s.fresh(n)
	}
	i := bits.TrailingZeros32(^c.used)
	if c.used |= 1 << i; c.full() {
		s.room = s.room[:last]
	}
	s.n++
	return n*perChunk + uint32(i) + 1, &c.values[i]
}

func (c *chunk[T]) full() bool { return c.used == 1<<len(c.values)-1 }

// fresh returns the values of chunk n.
func (s *slab[T]) fresh(n uint32) []T {
	switch {
	case n < small:
		return make([]T, 1+3*n)
	case len(s.spare) == 0:
		return make([]T, perChunk)
	}
	last := len(s.spare) - 1
	values := s.spare[last]
	s.spare = s.spare[:last]
	return values
}

// at returns the value at an allocated place.
func (s *slab[T]) at(place uint32) *T {
	return &s.chunks[(place-1)/perChunk].values[(place-1)%perChunk]
}

// look returns the value at a place that was allocated once. The value is zero if the place
// was freed; nil if its whole chunk is empty.
func (s *slab[T]) look(place uint32) *T {
	n, i := (place-1)/perChunk, (place-1)%perChunk
	if n >= uint32(len(s.chunks)) || i >= uint32(len(s.chunks[n].values)) {
		return nil
	}
	return &s.chunks[n].values[i]
}

// drop zeroes the value at an allocated place, and frees the place.
func (s *slab[T]) drop(place uint32) {
	n, i := (place-1)/perChunk, (place-1)%perChunk
	c := &s.chunks[n]
	var zero T
	c.values[i] = zero
	if c.full() {
		s.room = append(s.room, n)
	}
	s.n--
	if c.used &^= 1 << i; c.used == 0 && n >= small {
		if len(s.spare) < spares {
			s.spare = append(s.spare, c.values)
		}
		c.values = nil
	}
	if s.n == 0 && len(s.chunks) >= shedAt {
		*s = slab[T]{}
	}
}
