// Package record encodes what the store writes to its log: each change of a message, a queue
// or a lease is a record. The records of one step are one group, and one entry of the log: it
// is there whole or not at all.
//
// # The idea
//
// A record says what something is from then on, not what was done to it: a retry, a snooze, a
// release, a lapse and a reschedule are all a Move, with the resulting due time and attempt.
// So a replay needs no rules of queues and no clock, and replaying a record twice changes
// nothing.
//
// There are two kinds of change to a message. A Put carries the content and needs nothing
// else. A Move does not, and needs an earlier record of the message, at or after the position
// from which the log is replayed. So a Move is only for a message in the active memtable. A
// message that leaves a sealed memtable or an sstable is Put: the sstable may be gone when the
// log is replayed.
//
// The record of a message that leaves an sstable names its place there, a Spot: the number of
// the sstable, which is never used again, and a position in it. A replay deletes the entry
// without a look-up. If that sstable is gone by then, it looks the id up in the present ones.
//
// # What is durable, and what is made again
//
// In the log: messages and their changes, leases, remembered keys, finished messages, the names,
// settings and pauses of queues. Leases given to other processes have their nonce there, so that
// they can be settled after a restart. Leases of the process itself have none, since nothing is
// left to settle them: opening ends them, and their attempts count.
//
// Made again on opening: counts and forecasts, from the deletion bitmaps of the sstables and
// from the memtable; the order of due messages; which message has a key. Forgotten: what a
// rate has let pass, and which hints were given.
//
// When the position from which the log is replayed moves forward, what is only in tables in
// memory is written again after it: names, settings, pauses, leases.
//
// The format is in docs/formats/records.md.
package record
