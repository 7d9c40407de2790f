package diskengine

import (
	"slices"
	"sync"
	"unsafe"
)

// scratch is room in which a call puts things together. Calls use it one after another: it is most
// of what each would allocate.
type scratch struct {
	group          []byte      // records of a step
	touched        []*queue    // that they are of
	value, content []byte      // of a message
	items          []readyItem // that were read
	lookups        []keyLookup // keys of a push
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// soughtFor returns room for what is known of n keys, of which nothing is known yet.
func (s *scratch) lookupsFor(n int) []keyLookup {
	s.lookups = slices.Grow(s.lookups[:0], n)[:n]
	clear(s.lookups)
	return s.lookups
}

// keptScratch is how many bytes each part of a scratch has at most that is kept.
const keptScratch = 1 << 20

// free gives the room back, of which nothing is to be used afterwards.
func (s *scratch) free() {
	s.group, s.value, s.content = kept(s.group), kept(s.value), kept(s.content)
	clear(s.touched[:cap(s.touched)])
	s.touched, s.items, s.lookups = kept(s.touched), kept(s.items), kept(s.lookups)
	scratches.Put(s)
}

// kept is the room of a part; nil: it is too much to be kept.
func kept[T any](part []T) []T {
	var one T
	if uintptr(cap(part))*unsafe.Sizeof(one) > keptScratch {
		return nil
	}
	return part[:0]
}
