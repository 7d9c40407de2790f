package timer

import (
	"iter"
	"time"
)

// Core is the shape that [Wheel], [Ring] and [Heap] share: pure structures
// that are told the time. None is safe for concurrent use; [Runner] wraps one
// for that.
type Core[T any] interface {
	// Schedule files v for due. It is never yielded before.
	Schedule(due time.Time, v T) Handle
	// Cancel removes an entry; false when the handle is stale.
	Cancel(h Handle) (T, bool)
	// Reset moves an entry to another due; false when the handle is stale.
	Reset(h Handle, due time.Time) bool
	// Advance yields and removes what is due at now, with its due.
	Advance(now time.Time) iter.Seq2[time.Time, T]
	// Poll removes the first of what is due at now, and returns it with its due;
	// false when nothing is.
	Poll(now time.Time) (due time.Time, v T, ok bool)
	// Next is when Advance should be called next; false when nothing pends.
	Next() (time.Time, bool)
	// Len is the number of pending entries.
	Len() int
}

var (
	_ Core[int] = (*Wheel[int])(nil)
	_ Core[int] = (*Ring[int])(nil)
	_ Core[int] = (*Heap[int])(nil)
)
