package sstable

import (
	"fmt"
	"sync"
)

// mostSpoilt is how many unreadable places of an sstable are remembered: enough to tell that
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

// Spoilt is how many blocks of the sstable were found damaged or unreadable since it was
// opened.
func (r *Table) Spoilt() int {
	r.spoilt.mu.Lock()
	defer r.spoilt.mu.Unlock()
	return len(r.spoilt.at)
}

// NoteSpoilt notes a damaged block that another reader of the file has met.
func (r *Table) NoteSpoilt(off int64) { r.spoilt.note(off) }

// Misread returns the error of damage for a value whose checksum matches, but which the caller
// cannot decode.
func (r *Table) Misread(pos uint32, err error) error {
	return r.damage(r.blocks[r.blockAt(pos)].off, fmt.Sprintf("the value of entry %d: %v", pos, err))
}
