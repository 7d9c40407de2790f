package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// State is what a manifest says.
type State struct {
	// Store is what the store is called, part of the checksums of its log and sstables. Secret is
	// what keys are hashed with in the sstables. Neither changes.
	Store  uint64
	Secret [16]byte

	// Begun says that a segment of the log was begun, durably: there is always one from then on. Where
	// it is not set a log without any is that of a first opening that was cut off.
	Begun bool

	// Replay is the position in the log from which it is replayed: what came before is in the
	// sstables.
	Replay uint64

	// The least numbers that were never used: of messages, queues, and files, which are sstables,
	// deletion bitmaps and bodies. What the log says from Replay on may take them further.
	NextID    uint64
	NextQueue uint32
	NextFile  uint64

	// Sstables are the sstables that count, by their numbers.
	Tables []Table
}

// Table is one that counts.
type Table struct {
	Number  uint64
	Area    uint8  // what it holds: the caller's
	Entries uint32 // that were ever in it; at least 1
	Alive   uint32 // of them, by Marks
	Bytes   uint64 // of its file

	// Deletions is the number of the file with its deletion bitmap; 0: none has died. Several
	// sstables may share one. Deaths that the log tells from Replay on may be missing there.
	Deletions uint64
}

// MaxTables is how many sstables a manifest names at most.
const MaxTables = 1 << 16

// check says what is wrong with a state.
func (s *State) check() error {
	if s.NextID == 0 || s.NextQueue == 0 || s.NextFile == 0 {
		return errors.New("the next id, queue or file is 0")
	}
	if len(s.Tables) > MaxTables {
		return fmt.Errorf("%d sstables; at most %d are allowed", len(s.Tables), MaxTables)
	}
	last := uint64(0)
	for _, r := range s.Tables {
		switch {
		case r.Number <= last:
			return fmt.Errorf("sstable %d stands behind sstable %d", r.Number, last)
		case r.Number >= s.NextFile || r.Deletions >= s.NextFile:
			return fmt.Errorf("sstable %d, deletion bitmaps %d: the next file is %d", r.Number, r.Deletions, s.NextFile)
		case r.Entries == 0 || r.Entries > math.MaxInt32 || r.Alive > r.Entries || r.Deletions == 0 && r.Alive != r.Entries:
			return fmt.Errorf("sstable %d has %d entries of which %d are alive", r.Number, r.Entries, r.Alive)
		}
		last = r.Number
	}
	return nil
}

// Clone returns a state that shares nothing with s.
func (s *State) Clone() State {
	c := *s
	c.Tables = slices.Clone(s.Tables)
	return c
}

// Table finds an sstable by its number.
func (s *State) Table(number uint64) (Table, bool) {
	i, found := slices.BinarySearchFunc(s.Tables, number, func(r Table, n uint64) int { return cmp.Compare(r.Number, n) })
	if !found {
		return Table{}, false
	}
	return s.Tables[i], true
}

// Names reports whether a number is that of a file that counts, an sstable or deletion bitmaps. Bodies are named
// by their messages.
func (s *State) Names(file uint64) bool {
	return file != 0 && slices.ContainsFunc(s.Tables, func(r Table) bool { return r.Number == file || r.Deletions == file })
}
