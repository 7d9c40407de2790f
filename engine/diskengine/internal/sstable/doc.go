// Package sstable keeps entries in immutable files, sstables, each sorted by queue, time and id, and
// knows of each entry whether it is still alive.
//
// # The idea
//
// An sstable is written once, from a sorted source, and never changed. An entry has a position in
// it, from 0 on in the order of the sstable, and all else is about positions: the index of keys
// and the index of ids lead to them, a Scan goes through a range of them, and a bit for each
// in memory, Live, says which were deleted. So a removal costs a bit and no write to the file, a
// count is bits counted over a range, and what the file needs in memory is one filter over its
// keys and one line a block.
//
// When enough have died, or there are too many sstables, Merge copies the live entries of some sstables to
// a new one. Entries that die in the old ones meanwhile are taken over by Merged.CatchUp, which the
// caller calls a last time under the lock under which it kills and puts the new sstable in place
// of the old.
//
// What a value means is not this package's affair, nor are names of queues and keys: queues
// are numbers, and a key is known by its 128-bit hash under a secret of the store (Secret), so
// a client cannot make two keys that collide. 128 bits are taken as exact.
//
// # What may be relied on
//
//   - When Writer.Finish or Merge has returned, the sstable is durable. Before, the file is there
//     or not, and may hold anything; the caller's manifest says which sstables count, and Sweep
//     removes the others.
//   - Nothing is served that was not checked: each block carries a checksum that also binds it
//     to its place, its sstable and its store. What does not match is a *vfs.DamageError that names
//     file and offset. An error of the file system is not damage, and is returned as it is.
//   - Open reads the footer, the tables and the filter, about 2 bytes an entry, and no more.
//   - A file is closed, and removed if Remove was called, when the last Scan is closed.
//
// # Rules
//
// A Table's methods may be called from many goroutines, Kill among them; a Writer, a Scan and a
// Merged are for one at a time. There are no locks and no goroutines here. Writing and merging
// call Config.Pace between slices of work of about a millisecond at most.
//
// The format is in docs/formats/sstable.md.
package sstable
