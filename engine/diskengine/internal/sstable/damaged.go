package sstable

import (
	"fmt"
	"sync"
)

// mostDamaged is how many unreadable places of an sstable are remembered: enough to tell that
// there are many.
const mostDamaged = 4096

// damagedAt is where an sstable could not be read.
type damagedAt struct {
	mu sync.Mutex
	at map[int64]struct{}
}

// note remembers a place.
func (s *damagedAt) note(off int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = make(map[int64]struct{})
	}
	if len(s.at) < mostDamaged {
		s.at[off] = struct{}{}
	}
}

// Damaged is how many blocks of the sstable were found damaged or unreadable since it was
// opened.
func (r *Table) Damaged() int {
	r.damagedAt.mu.Lock()
	defer r.damagedAt.mu.Unlock()
	return len(r.damagedAt.at)
}

// NoteDamaged notes a damaged block that another reader of the file has met.
func (r *Table) NoteDamaged(off int64) { r.damagedAt.note(off) }

// Misread returns the error of damage for a value that has the right checksum, but which the
// caller cannot decode.
func (r *Table) Misread(pos uint32, err error) error {
	return r.damage(r.blocks[r.blockAt(pos)].off, fmt.Sprintf("the value of entry %d: %v", pos, err))
}
