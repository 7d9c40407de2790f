// Package sstable keeps entries in immutable files, sstables, each sorted by queue, time and
// id. It knows whether each entry is still alive.
//
// # The idea
//
// An sstable is written once, from a sorted source, and never changed. An entry has a position
// in it, from 0 on in the order of the sstable. All else is about positions: the index of keys
// and the index of ids lead to them, and a Scan goes through a range of them. A bit for each
// in memory (Live) says which were deleted. So a deletion sets a bit and writes nothing to the
// file, and a count counts bits over a range. In memory the file needs one filter over its
// keys and one row for each block.
//
// When enough entries were deleted, or there are too many sstables, Merge copies the live
// entries of some sstables to a new one. Entries that are deleted in the old ones meanwhile
// are deleted from the new one by Merged.CatchUp. The caller calls it a last time under the
// lock under which it deletes entries and replaces the old sstables.
//
// This package knows neither what a value means nor the names of queues and keys: queues are
// numbers, and a key is known by its 128-bit hash under a secret of the store (Secret). So a
// client cannot make two keys that collide, and equal hashes are taken for equal keys.
//
// # What may be relied on
//
//   - When Writer.Finish or Merge has returned, the sstable is durable. Before, the file may
//     be there or not, and hold anything. The caller's manifest says which sstables count, and
//     Sweep removes the others.
//   - Everything that is read is checked, except by Scan.Heads: each block has a checksum that
//     also binds it to its place, its sstable and its store. A mismatch is a *vfs.DamageError
//     that names file and offset. An error of the file system is not damage, and is returned
//     as it is.
//   - Open reads only the header, the footer, the tables and the filter, about 2 bytes for
//     each entry.
//   - A file is closed, and removed if Remove was called, when the last Scan is closed.
//
// # Rules
//
// Many goroutines may call the methods of a Table, also Kill; a Writer, a Scan and a Merged
// are for one at a time. There are no goroutines here. Writing and merging call Config.Pace
// between slices of work of about a millisecond at most.
//
// The format is in docs/formats/sstable.md.
package sstable
