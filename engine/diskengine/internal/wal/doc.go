// Package wal is a write-ahead log. Many goroutines append entries, each a kind and some bytes
// that mean nothing here. All callers that wait share the syncs that make the entries durable.
//
// # The idea
//
// The log is one stream of bytes. A Pos is a place in it, from 0 on; no Pos that was durable
// is used twice. Append copies an entry to a buffer under a short lock and returns where the
// entry ends; Wait returns when the stream is durable up to there. One goroutine, the writer,
// takes the full buffers, writes them, syncs, and wakes the waiting callers; meanwhile the
// next buffers fill. It writes frames: a frame is a piece of the stream with a checksum. A
// caller that needs only the write (WaitWritten) does not wait for a sync under way: the
// buffers are written beside it, and the next sync makes them durable.
//
// Frames are in segments, files of one size that are used again and again: if its blocks were
// written before, a sync has no metadata of the file system to write. Another goroutine, the
// preparer, keeps the next segments ready. It makes them from segments that Release says are
// no longer needed.
//
// # Why it is hard
//
// What a crash leaves after the last sync is arbitrary: each sector may be new or old. It is
// dropped, since no caller was told that it is durable. But a broken frame that was durable
// must not be dropped with all that follows. These rules tell the two apart:
//
//   - Each frame says how far the log was synced when it was written. A broken frame is a torn
//     tail only if no frame after it says that the log was synced beyond its start.
//   - A segment is begun only when all before it is synced. So a broken frame in any segment
//     but the last is damage.
//   - After a second without appends, and at Close, an empty frame is written. It says that
//     all is synced. Without it a broken last frame counts as torn.
//   - Nothing is appended after a torn tail: after opening, the log goes on in the next
//     segment. Its header says where the stream goes on. So what was dropped once stays
//     dropped.
//
// Old bytes of a segment must not be taken for the log either. So each frame names the
// checksum of the one before, and the first one that of the segment's header. The header has a
// random salt, which is made anew each time the segment is begun.
//
// A failed sync may have dropped bytes that a read still returns. So the log stops for good.
// Opening it again writes the last bytes once more before it syncs them.
//
// # Rules
//
// Log.mu guards the fields below it, and is held for no call of the file system. Long entries
// are copied before it is taken (Prepare). Frames are written under the writer's own mutex, by
// the writer or, during its syncs, by a write ahead, which begins no segment. A sync covers
// all that was written when it began. Only the preparer makes, renames and removes files. A
// segment is released only when the next one is durably begun, so there is always one that
// says where the stream is.
//
// The format is in docs/formats/log.md.
package wal
