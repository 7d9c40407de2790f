// Package memtable keeps in memory the messages, remembered keys and finished messages that
// are in no sstable yet. They are found by id, by key and in the order of their time.
//
// # The idea
//
// Entries are in a memtable, which has memory of its own. When it or the log has grown the
// memtable is sealed: a new one takes in new entries. The sealed one is written to sstables,
// in slices, and then dropped whole. A look-up goes through all memtables.
//
// An entry is a slot: a header of 40 bytes, the key, and the value, which only the caller
// understands. Slots are cut from chunks of 256 KiB. All slots of a chunk have one size, at
// most an eighth larger than the entry; above 64 KiB it is a third, a half or all of a chunk.
// So freed slots are used again: most entries are removed soon, and a memtable grows with its
// live entries, not with the log. Beside the slots there are
//
//   - an index of keys: pages of hashes, found through a directory by extendible hashing, which
//     divides one page at a time and never all. Keys are hashed with a secret of the process and
//     compared whole;
//   - a table of ids, since new ones follow each other, and an index of the other ids, of
//     entries that came from sstables;
//   - an order of (area, queue, time, id): a B+ tree with nodes of 1 KiB, which new entries enter
//     together when it is read. Entries that come in order fill its nodes, and emptied nodes are
//     joined. Nodes above the leaves say how many entries are below, so that entries between two
//     times are counted without a walk;
//   - another such order for the keys of dead and of finished messages, as many may have the
//     same key.
//
// # Why so
//
// All but the directories is in chunks without pointers, outside of Go's heap: a garbage
// collection costs the same with a million entries as with none, and the heap keeps no reserve
// for them. No operation copies or clears much: the longest doubles a directory, which has 4
// bytes for 300 entries or more. Memory is counted in chunks, and so known exactly.
//
// A value longer than a chunk has memory of its own. Most of the value is copied there before
// the lock is taken (Ahead). Some of that memory is kept for later values, as getting it from
// the system and giving it back takes long.
//
// # Leases
//
// A table of leases has memory of the same kind: slots without pointers, an index of ids, and trees by
// deadline, lapsed leases apart, and by due time.
//
// # Rules
//
// A sealed memtable takes nothing in, and its entries do not move. They are passed to the
// sstable in order, and each gets a number there, its ordinal. An entry that changes leaves
// the sealed memtable for the active one (Put). Left returns the ordinals of such entries:
// they are deleted from the sstable in the step in which it replaces the memtable.
//
// Only the pool of chunks has a lock. Look-ups by id and key may run side by side. Changes run
// alone, and so does what reads the order, which sorts it: the caller makes sure of both. The bytes of an entry that is found are part of its slot, and
// valid until the next change.
package memtable
