// Package diskengine keeps messages on the local disk: the embedded, durable default, disk:DIR. It
// needs no other service, and one process at a time opens a directory. The store is made for messages:
// one log, sstables sorted by due time, a deletion bitmap for each.
//
// # The idea
//
// A call changes memory, appends its changes to the log as one entry, and answers once the log
// is synced up to there. A message starts in the memtable. When the memtable has grown, and
// few of its messages are due soon, it is written to an sstable: an immutable file sorted by
// queue, due time and id. The log before it is then released. Most messages are handled or
// cancelled before that, and cost only their records. Deleting a message of an sstable sets a
// bit. When many bits are set, a merge copies the live messages.
//
// # What is where
//
//   - new messages, also dead and finished ones, and new remembered keys: package memtable, in
//     memory.
//   - all others: package sstable. Package manifest says which sstables count, which of their
//     messages were deleted, and from where the log is replayed. Package store keeps memtables,
//     sstables and the log together.
//   - every change: a record (package record) in an entry of the log (package wal).
//   - leases, names, settings and pauses of queues: tables in memory. They are written to the
//     log again when the position from which it is replayed moves.
//   - messages about to be leased: a heap for each queue (readyqueue.go). It is filled in the
//     order of due times as leases ask for more: from the memtables, and through cursors into
//     the sstables (store.Cursors).
//
// # How a call goes
//
// One lock, store.Store.Mu, guards all that is in memory. It is never held over a call of the file
// system. A call runs in steps under it (call.go). A step may need something from the
// sstables: the message with a key, a content, or what is due next. It then changes nothing
// for that item. What it lacks is read without the lock, and the step is run again
// (store.Reader). What was read from an immutable file stays right; where a message is now is
// looked up under the lock each time.
//
// In the background package store flushes memtables to sstables, merges sstables and writes the
// manifest. It copies memtables in slices under the lock.
//
// Leases are in a table of their own (memtable.Leases), bounded in number; the message stays
// where it is. A lapse writes nothing: the lapsed lease stays in the table until the message
// is settled or leased again, or room is short.
//
// A disk that hangs holds up the calls that wait for it, but no longer than their contexts
// last. Close gives up waiting after Config.CloseTimeout. What still runs then ends when the
// disk answers.
//
// docs/store.md draws the store and says why it is so; docs/formats has the formats.
package diskengine
