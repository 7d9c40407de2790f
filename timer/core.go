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
	// Due is the due of an entry; false when the handle is stale.
	Due(h Handle) (time.Time, bool)
	// Advance yields and removes what is due at now, with its due.
	Advance(now time.Time) iter.Seq2[time.Time, T]
	// Poll removes the first of what is due at now, and returns it; false when
	// nothing is.
	Poll(now time.Time) (Timer[T], bool)
	// Drain yields and removes everything, due or not, with its due.
	Drain() iter.Seq2[time.Time, T]
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

// Timer is an entry of a structure, or what was one until it came due.
type Timer[T any] struct {
	Handle Handle // stale when the entry has come due
	Due    time.Time
	Value  T
}

// lender is a Core that can lend what is due: the entry is not pending any
// more, but its handle stays live. Reset makes it pending again, Cancel ends
// it. The structures of this package all can.
type lender[T any] interface {
	// lend is Poll for as many as there is room for, but for the handles.
	lend(now time.Time, into []Timer[T]) int
	// lent says whether h names an entry that is lent.
	lent(h Handle) bool
	// repaid is Cancel of an entry that is lent.
	repaid(h Handle)
}

var (
	_ lender[int] = (*Wheel[int])(nil)
	_ lender[int] = (*Ring[int])(nil)
	_ lender[int] = (*Heap[int])(nil)
)
