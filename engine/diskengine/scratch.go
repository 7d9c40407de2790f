package diskengine

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// scratch has the buffers of a call. They are most of what a call would allocate, so later
// calls use them again.
type scratch struct {
	group          []byte       // records of a step
	touched        []*queue     // the queues of the records
	value, content []byte       // of a message
	past           []byte       // key and value of a finished message
	items          []store.Item // items on their way to a heap
	lookups        []keyLookup  // keys of a push
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// lookupsFor returns n empty keyLookups.
func (s *scratch) lookupsFor(n int) []keyLookup {
	s.lookups = slices.Grow(s.lookups[:0], n)[:n]
	clear(s.lookups)
	return s.lookups
}

// keptScratch is the most bytes of each buffer that are kept for later calls.
const keptScratch = 1 << 20

// free gives the buffers back. Nothing in them may be used afterwards.
func (s *scratch) free() {
	s.group, s.value, s.content, s.past = kept(s.group), kept(s.value), kept(s.content), kept(s.past)
	clear(s.touched[:cap(s.touched)])
	s.touched, s.items, s.lookups = kept(s.touched), kept(s.items), kept(s.lookups)
	scratches.Put(s)
}

// kept empties a buffer; nil: it is too large to be kept.
func kept[T any](part []T) []T {
	var one T
	if uintptr(cap(part))*unsafe.Sizeof(one) > keptScratch {
		return nil
	}
	return part[:0]
}
