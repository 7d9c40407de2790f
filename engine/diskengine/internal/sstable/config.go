package sstable

import (
	"cmp"
	"math/rand/v2"
)

const (
	// MaxEntries is how many entries an sstable holds at most.
	MaxEntries = 1<<31 - 1

	// MaxValue is how long a value may be, in bytes.
	MaxValue = 1 << 30

	minBlock = 512
	maxBlock = 1 << 20
)

// Config is how sstables are kept. Nil works.
type Config struct {
	// ID is what the store is called; an sstable of another store is refused.
	ID uint64

	// BlockBytes is how large blocks of entries become before they are packed, each read and checked as a whole. A
	// longer entry has one of its own. It may change from sstable to sstable. 0: 16 KiB; 512 bytes
	// to 1 MiB.
	BlockBytes int

	// GroupWords is how many times 64 entries have a count of the living of their own. 0: 256.
	GroupWords int

	// SyncBytes is after how many bytes what was written so far is synced, so that the last
	// sync is short for all users of the disk. It is asked for each slice. nil: 8 MiB.
	SyncBytes func() int

	// Plain is asked for each block of entries whether it stays unpacked: packing takes the
	// processor about as long as all else that is done with the entries. nil: none is.
	Plain func() bool

	// Pace is called between slices of the work of Writer and Merge, each below a
	// millisecond or about 128 KiB, with the bytes that were written since the last call. It
	// may wait. An error of it ends the work. nil: nothing.
	Pace func(written int) error

	// Salt returns a random number for each sstable. nil: math/rand/v2 does.
	Salt func() uint64

	slice int // bytes in a write, at most; 0: outSlice
}

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	d.BlockBytes = cmp.Or(d.BlockBytes, 16<<10)
	d.GroupWords = cmp.Or(d.GroupWords, groupWords)
	d.BlockBytes = min(maxBlock, max(minBlock, d.BlockBytes))
	if d.SyncBytes == nil {
		d.SyncBytes = func() int { return 8 << 20 }
	}
	d.slice = cmp.Or(d.slice, outSlice)
	if d.Plain == nil {
		d.Plain = func() bool { return false }
	}
	if d.Pace == nil {
		d.Pace = func(int) error { return nil }
	}
	if d.Salt == nil {
		d.Salt = rand.Uint64
	}
	return d
}
