// Package memtable keeps in memory what has not been written to an sstable yet: messages, found by id, by
// key and in the order of their time.
//
// # The idea
//
// Entries are in a memtable, which has everything in memory of its own. When the log has grown long the
// memtable is sealed: a new one takes in what comes, while the sealed one is written to sstables, in
// slices, and is then dropped whole. A look-up goes through all of them.
//
// An entry is a slot: a header of 40 bytes, the key, and the value, which is the caller's affair. Slots
// are cut from chunks of 256 KiB, each for slots of one size, at most an eighth larger than what they
// hold; above 64 KiB a third, a half or all of a chunk. So freed slots are used again: most entries are
// removed soon, and a memtable grows with what lives in it, not with the log. Beside them there are
//
//   - an index of keys: pages of hashes, found through a directory by extendible hashing, which
//     divides one page at a time and never all. Keys are hashed with a secret of the process and
//     compared whole;
//   - a table of ids, since new ones follow each other, and such an index of those that came from
//     elsewhere;
//   - an order of (area, queue, time, id): a B+ tree with nodes of 1 KiB. What comes in order
//     fills its nodes, and emptied ones are joined. Nodes above the leaves say how many entries are
//     below, so that entries between two times are counted without a walk;
//   - another such order for the keys of the dead: many may have one key.
//
// # Why so
//
// All of it but the directories is chunks without pointers, from outside of Go's heap: a garbage
// collection costs the same with a million entries as with none, and the heap keeps no reserve for them.
// No operation copies or clears much: the longest doubles a directory, 4 bytes for 300 entries and more.
// Memory is counted by chunks, and so known exactly.
//
// A value longer than a chunk has memory of its own, to which most of it is copied before the lock is
// taken (Ahead). Some of that memory is kept for others: it takes long to get it from the system, and to
// give it back.
//
// # Leases
//
// A table of leases has memory of the same kind: slots without pointers, an index of ids, and trees by
// deadline, lapsed leases apart, and by due time.
//
// # Rules
//
// A sealed memtable takes nothing in, and its entries do not move: they are passed to the sstable in
// order, and each has a number there, its ordinal. An entry that changes leaves the sealed memtable for
// the active one (Put). Left returns its ordinal, for the sstable to kill it in the step in which the
// sstable takes the place of the memtable.
//
// Only the pool of chunks has a lock. Look-ups may run side by side, changes run alone; the caller sees to
// both. Entries that are found are slices of the slots, valid until the next change.
package memtable
