// Package record is what the store writes to its log: each change of a message, of a queue and
// of a lease as bytes. What one call changes is one group of records, and one entry of the log:
// it is there whole or not at all.
//
// # The idea
//
// A record says what something is from then on, not what was done to it: a retry, a snooze, a
// release, a lapse and a reschedule are all a Move, with the due time and the attempt that came
// of it. Replay needs no rules of queues and no clock, and replaying what has
// been taken in already changes nothing.
//
// There are two kinds of change to a message. One that carries its content (Put) needs
// nothing else. One that does not (Move) needs an earlier record of the message, at or after the
// position from which the log is replayed. So a Move is for a message in the active memtable. One that
// leaves a sealed memtable or an sstable is Put: the sstable may be gone when the log is replayed.
//
// What leaves an sstable names its place there, a Spot: a number of an sstable, which is never used again,
// and a position in it. Its bit is set without looking the message up; where that sstable is gone
// by now, the id is looked up in the present ones.
//
// # What is durable, and what is made again
//
// In the log: messages, what becomes of them, leases, remembered keys, the names, settings and
// pauses of queues, purges and what they spare. Leases given to other processes stand with their nonce, so that they
// can be settled after a restart; those of the process itself without, since none is left to
// settle them: opening ends them, the attempt counted.
//
// Made again on opening: counts and forecasts, of the bits of the sstables and of the memtable;
// the order of what is due; which message holds a key. Forgotten: what a rate has let pass, which
// hints were given.
//
// When the position from which the log is replayed moves forward, what is in tables and not
// in sstables is written again after it: names, settings, pauses, leases.
//
// The format is in docs/formats/records.md.
package record
