package sstable

import (
	"cmp"
	"math/rand/v2"
)

const (
	// MaxEntries is the most entries of an sstable.
	MaxEntries = 1<<31 - 1

	// MaxValue is the most bytes of a value.
	MaxValue = 1 << 30

	minBlock = 512
	maxBlock = 1 << 20
)

// Config configures sstables. Nil means all defaults.
type Config struct {
	// ID identifies the store; an sstable of another store is refused.
	ID uint64

	// BlockBytes is how large a block of entries becomes before it is packed. A block is read
	// and checked as a whole. A longer entry has a block of its own. BlockBytes may differ
	// from sstable to sstable. 0: 16 KiB; 512 bytes to 1 MiB.
	BlockBytes int

	// GroupWords is how many times 64 entries make a group, which has a count of its live
	// entries. 0: 256.
	GroupWords int

	// SyncBytes is how many bytes are written between two syncs, so that each is short: the
	// disk's other users wait for it. 0: 512 KiB.
	SyncBytes int64

	// Hasty is asked whether there is haste. Then blocks of entries stay unpacked: packing takes
	// the processor about as long as all other work on the entries. And eight times SyncBytes of
	// long values are written between two syncs. nil: there is none.
	Hasty func() bool

	// Pace is called between slices of the work of Writer and Merge, each below a millisecond
	// or about 128 KiB, with the bytes written since the last call. It may wait. Its error
	// ends the work. nil: it is not called.
	Pace func(written int) error

	// Salt returns a random number for each sstable. nil: math/rand/v2 does.
	Salt func() uint64

	slice int // the most bytes of a write; 0: outSlice
}

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	d.BlockBytes = cmp.Or(d.BlockBytes, 16<<10)
	d.GroupWords = cmp.Or(d.GroupWords, groupWords)
	d.BlockBytes = min(maxBlock, max(minBlock, d.BlockBytes))
	d.SyncBytes = cmp.Or(d.SyncBytes, 512<<10)
	d.slice = cmp.Or(d.slice, outSlice)
	if d.Hasty == nil {
		d.Hasty = func() bool { return false }
	}
	if d.Pace == nil {
		d.Pace = func(int) error { return nil }
	}
	if d.Salt == nil {
		d.Salt = rand.Uint64
	}
	return d
}
