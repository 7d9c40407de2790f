// Package wal is a write-ahead log: entries, each a kind and some bytes that mean nothing
// here, are appended by many and made durable by syncs that all waiting callers share.
//
// # The idea
//
// The log is one stream of bytes, and a Pos is a place in it, from 0 on, never used twice for
// what was durable. Append copies an entry to a buffer under a short lock and returns where it
// ends; Wait returns when the stream is durable up to there. One goroutine, the writer, takes
// all that has been gathered, writes it, syncs, and wakes those that wait; meanwhile the next
// buffers fill. What it writes are frames: a piece of the stream with a checksum. A caller that waits for no
// more than the write (WaitWritten) does not wait for a sync under way: what has been gathered is
// written beside it then, and made durable by the next one.
//
// Frames are in segments, files of one size that are used again and again: a sync that finds
// its blocks written before has no metadata of the file system to write. Another goroutine,
// the preparer, has the next segments ready before they are needed, and makes them of those
// that Release says are not needed.
//
// # Why it is hard
//
// What a crash leaves behind the last sync is arbitrary: each sector new or old. It is dropped,
// since no caller was told that it is durable. But a broken frame that was durable must not be
// dropped with all that follows. The two are told apart by what is known:
//
//   - Each frame says how far the log was synced when it was written. A broken frame is a torn
//     tail only if no frame after it says that the log was synced beyond its start.
//   - A segment is begun only when all before it is synced; so a broken frame in one that is
//     not the last is damage.
//   - After a second without appends, and at Close, an empty frame is written that says that
//     all is synced. Without it a broken last frame counts as torn.
//   - Nothing is appended after a torn tail: after opening, the log goes on in the next
//     segment, whose header says where the stream goes on. So what once was dropped stays so.
//
// And what was there before must not be taken for the log: each frame names the checksum of
// the one before, the first in a segment that of the segment's header, and that has a random
// salt, made each time that a segment is begun.
//
// A sync that fails may have dropped what it was to write, though it is still seen; so the log
// stops for good, and opening it again writes what was written last once more before it is
// synced.
//
// # Rules
//
// Log.mu guards what the fields say it guards, and is held for no call of the file system. Long
// entries are copied before (Prepare). Frames are written under the writer's own mutex: the
// writer, and beside its syncs a write ahead, which begins no segment. A sync covers what was written
// when it began. Only the preparer makes, renames and removes files. A segment is given away only when
// the next one is durably begun: there is always one that says where the stream is.
//
// The format is in docs/formats/log.md.
package wal
