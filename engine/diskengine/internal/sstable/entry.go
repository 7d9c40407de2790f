package sstable

import "cmp"

// Place is the position of an entry in the order of sstables: by queue, then time, then id.
type Place struct {
	Queue uint32
	At    int64 // milliseconds, of either sign
	ID    uint64
}

// Compare orders places.
func (p Place) Compare(o Place) int {
	if p.Queue != o.Queue {
		return cmp.Compare(p.Queue, o.Queue)
	}
	if p.At != o.At {
		return cmp.Compare(p.At, o.At)
	}
	return cmp.Compare(p.ID, o.ID)
}

// Entry is an entry of an sstable.
type Entry struct {
	Place
	Pos   uint32 // its position in the sstable, from 0 on
	Value []byte
	Cut   bool // Value has only the first bytes
}
