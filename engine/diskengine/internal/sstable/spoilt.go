package sstable

import (
	"fmt"
	"sync"
)

// mostSpoilt is how many places that cannot be read are remembered of an sstable: enough to tell that
// there are many.
const mostSpoilt = 4096

// spoilt is where an sstable could not be read.
type spoilt struct {
	mu sync.Mutex
	at map[int64]struct{}
}

// note remembers a place.
func (s *spoilt) note(off int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[int64]struct{})
	}
	if len(s.at) < mostSpoilt {
		s.at[off] = struct{}{}
	}
}

// Spoilt is in how many blocks what was read of the sstable was damaged, or could not be read at all, since
// it was opened.
func (r *Table) Spoilt() int {
	r.spoilt.mu.Lock()
	defer r.spoilt.mu.Unlock()
	return len(r.spoilt.at)
}

// NoteSpoilt notes a damaged block that another reader of the file has met.
func (r *Table) NoteSpoilt(off int64) { r.spoilt.note(off) }

// Misread says that the value of the entry at a position, which is as it was written, is not what the caller
// writes: the error is that of damage.
func (r *Table) Misread(pos uint32, err error) error {
	return r.damage(r.blocks[r.blockAt(pos)].off, fmt.Sprintf("the value of entry %d: %v", pos, err))
}
