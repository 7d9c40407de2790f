// Package diskengine keeps messages on the local disk: the embedded, durable default, disk:DIR. It
// needs no other service, and one process at a time opens a directory. The store is made for messages:
// one log, sstables sorted by due time, a deletion bitmap for each.
//
// # The idea
//
// A call changes memory, appends what it changed to the log as one entry, and answers when the log is
// synced up to there. A message is in the memtable first. When that has grown, and few of its messages
// are due soon, it is written to an sstable, an immutable file sorted by queue, due time and id, and the
// log before it is released. Most messages are handled or cancelled before, and cost only their records.
// Deleting a message of an sstable sets a bit. When many bits are set, a merge copies the live messages.
//
// # What is where
//
//   - new messages, also dead ones, and new remembered keys: package memtable, in memory.
//   - all others: package sstable. Which sstables count, and from where the log is replayed: manifest.
//     What was deleted from them: deletions.
//   - every change: record, as entries of wal.
//   - leases, names, settings and pauses of queues: tables in memory, written to the log again when
//     the position from which it is replayed moves.
//   - what is about to be leased: a heap for each queue, filled in the order of due times as leases ask
//     for more (readyqueue.go), from the memtables and by cursors into the sstables (cursor.go).
//
// # How a call goes
//
// One lock, Engine.mu, guards all that is in memory. It is held for no call of the file system. A call
// goes in steps under it (call.go). A step that needs something of the sstables, as the message with a
// key, a content, or what is due next, changes nothing for that item, and says what it lacks. That is
// read without the lock, and the step is done again (look.go, found.go). What was read of an immutable
// file stays right; where a message is now is looked up under the lock each time.
//
// In the background a compactor seals memtables, lets them rest and flushes them (flush.go), merges
// sstables (merge.go) and writes the manifest (compactor.go). It copies memtables in slices under the
// lock.
//
// Leases are in a table of their own (memtable.Leases), bounded in number, and the message stays where
// it is. A lapsed lease is kept there until the message is settled or leased again, or room is short: a
// lapse writes nothing.
//
// A disk that hangs holds up the calls that wait for it, and no longer than their contexts last; Close
// gives up waiting after Config.CloseTimeout. What still runs then ends with the disk's answer.
//
// docs/store.md draws it and says why it is so, docs/formats has the formats.
package diskengine
