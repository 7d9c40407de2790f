package timer

import (
	"iter"
	"time"
)

// Core is the interface of [Wheel], [Ring] and [Heap]: plain data structures.
// The caller passes the time. None is safe for concurrent use; [Runner] wraps
// one to make it so.
type Core[T any] interface {
	// Schedule adds v, to be yielded at due or later. It returns the handle.
	Schedule(due time.Time, v T) Handle
	// Cancel removes an entry and returns its value; false when the handle is
	// stale.
	Cancel(h Handle) (T, bool)
	// Reset moves an entry to another due time; false when the handle is stale.
	Reset(h Handle, due time.Time) bool
	// Due returns the due time of an entry; false when the handle is stale.
	Due(h Handle) (time.Time, bool)
	// Advance yields and removes the entries that are due at now, with their due
	// times.
	Advance(now time.Time) iter.Seq2[time.Time, T]
	// Poll removes and returns the first entry that is due at now; false when
	// there is none.
	Poll(now time.Time) (Timer[T], bool)
	// Drain yields and removes all entries, due or not, with their due times.
	Drain() iter.Seq2[time.Time, T]
	// Next returns when Advance should be called next; false when nothing is
	// pending.
	Next() (time.Time, bool)
	// Len returns the number of pending entries.
	Len() int
}

var (
	_ Core[int] = (*Wheel[int])(nil)
	_ Core[int] = (*Ring[int])(nil)
	_ Core[int] = (*Heap[int])(nil)
)

// Timer is an entry of a structure, pending or removed because it was due.
type Timer[T any] struct {
	Handle Handle // stale if the entry was removed
	Due    time.Time
	Value  T
}

// lender is a Core that can lend due entries. A lent entry is not pending any
// more, but its handle stays live: Reset makes it pending again, and Cancel ends
// it. All structures of this package are lenders.
type lender[T any] interface {
	// lend is Poll for as many entries as into has room for, except that their
	// handles stay live. It returns how many there were.
	lend(now time.Time, into []Timer[T]) int
	// lent reports whether h names a lent entry.
	lent(h Handle) bool
	// repaid is Cancel for a lent entry.
	repaid(h Handle)
}

var (
	_ lender[int] = (*Wheel[int])(nil)
	_ lender[int] = (*Ring[int])(nil)
	_ lender[int] = (*Heap[int])(nil)
)
