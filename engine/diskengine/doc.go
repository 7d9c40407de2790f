// Package diskengine keeps messages on the local disk: the embedded, durable default, disk:DIR. It
// needs no other service, and one process at a time opens a directory. What lies there is a store made
// for this: one log, sstables sorted by due time, a bit for every death.
//
// # The idea
//
// A call changes memory and appends what it changed to the log, as one entry, and answers when the
// log is synced up to there. Messages stand in a memtable until that has grown, and, if
// they are due soon, a while longer; then they are written to an sstable, an immutable file sorted by
// queue, due time and id, and the log behind is let go. Most are handled or cancelled before, and never
// cost more than their records. Who dies in an sstable loses a bit; what lives there is copied to another
// sstable when many have died.
//
// # What stands where
//
//   - recent messages, the dead and the keys that are remembered: package memtable, in memory.
//   - all others: package sstable. Which sstables count, and from where the log is replayed: manifest. Who
//     has died in them: deletion bitmaps.
//   - what becomes of each: record, as entries of wal.
//   - leases, names, settings and pauses of queues: tables in memory, written to the log again when
//     the position from which it is replayed moves.
//   - what is about to be leased: for each queue a heap of who is ready, filled in the order of due
//     times as somebody leases (near.go), from the memtables and by cursors into the sstables (lane.go).
//
// # How a call goes
//
// One lock, Engine.mu, guards all that is in memory. It is held for no call of the file system. A
// call goes in steps under it (call.go). A step that needs something of the sstables - who has a key, a
// content, who is due next - changes nothing for what it needs it for, and says what it lacks;
// that is read without the lock, and the step is done again (look.go, found.go). What was read of an
// immutable file stays right; where a message stands is asked under the lock each time.
//
// In the background a keeper seals memtables, lets them rest and flushes them (flush.go), merges sstables
// (merge.go) and writes the manifest (keeper.go). What it reads of memtables it takes in slices under the
// lock.
//
// Leases stand in a table of their own (memtable.Leases), bounded in number, and the message stays where
// it is. One that has lapsed is kept there until something else is decided, or room is short: a lapse
// writes nothing.
//
// A disk that hangs holds up who waits for it, and no longer than their contexts last; Close gives up
// waiting after Config.CloseTimeout. What then still runs ends with the disk's answer.
//
// docs/store.md draws it and says why it is so, docs/formats has the formats.
package diskengine
