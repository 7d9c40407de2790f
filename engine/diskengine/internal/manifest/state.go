package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// State is the content of a manifest.
type State struct {
	// Store identifies the store, and is part of the checksums of its log and sstables. Secret
	// is used to hash keys in the sstables. Neither changes.
	Store  uint64
	Secret [16]byte

	// Begun says that a segment of the log was begun, durably: from then on there is always
	// one. If Begun is not set, a log without a segment is of a first opening that was cut
	// off.
	Begun bool

	// Replay is the position from which the log is replayed: all before it is in the sstables.
	Replay uint64

	// The least numbers that were never used: of messages, of queues, and of sstables. The log
	// from Replay on may use higher ones.
	NextID    uint64
	NextQueue uint32
	NextFile  uint64

	// Tables are the sstables that count, by their numbers.
	Tables []Table
}

// Table is an sstable that counts.
type Table struct {
	Number  uint64
	Area    uint8  // what it holds; only the caller knows its meaning
	Entries uint32 // how many were ever in it; at least 1
	Alive   uint32 // how many of them are not deleted, by Deleted
	Bytes   uint64 // size of its file

	// Deleted is its deletion bitmap, from Live.AppendBits; empty: no entry was deleted, or, of
	// a damaged manifest, it cannot be read. It may miss deletions that are in the log from
	// Replay on. Its bytes must not be changed.
	Deleted []byte
}

// MaxTables is the most sstables that a manifest may name.
const MaxTables = 1 << 16

// check returns what is wrong with a state.
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
		case r.Number >= s.NextFile:
			return fmt.Errorf("sstable %d: the next file is %d", r.Number, s.NextFile)
		case r.Entries == 0 || r.Entries > math.MaxInt32 || r.Alive > r.Entries || len(r.Deleted) == 0 && r.Alive != r.Entries:
			return fmt.Errorf("sstable %d has %d entries of which %d are alive", r.Number, r.Entries, r.Alive)
		}
		last = r.Number
	}
	if size := s.size(); size > maxSize { // or it could be written, and not read again
		return fmt.Errorf("%d bytes with the deletion bitmaps; at most %d are allowed", size, maxSize)
	}
	return nil
}

// Clone returns a state that shares only deletion bitmaps with s.
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

// Names reports whether an sstable counts.
func (s *State) Names(number uint64) bool {
	_, ok := s.Table(number)
	return ok
}

// Restore deletes the entries of an open sstable that its deletion bitmap says. dir is the
// directory of the manifest. If the bitmap is missing, malformed or of another sstable, Restore
// returns a *vfs.DamageError and changes nothing.
func (t *Table) Restore(dir string, r *sstable.Table) error {
	if len(t.Deleted) == 0 && t.Alive == t.Entries || t.Entries == r.Len() && r.RestoreBits(t.Deleted) {
		return nil
	}
	return &vfs.DamageError{What: ErrDamaged, File: filepath.Join(dir, Name), Reason: fmt.Sprintf("the deletion bitmap of sstable %d is malformed", t.Number)}
}
