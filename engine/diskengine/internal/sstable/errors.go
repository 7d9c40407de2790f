package sstable

import "errors"

var (
	// ErrClosed says that the sstable was closed.
	ErrClosed = errors.New("the sstable is closed")

	// ErrDamaged says that something durable cannot be read. The error is a *vfs.DamageError.
	ErrDamaged = errors.New("an sstable is damaged")

	// ErrOrder says that entries were not added in their order.
	ErrOrder = errors.New("entries must be added to an sstable in the order of queue, time and id")

	// ErrTooLong says that a value is longer than MaxValue.
	ErrTooLong = errors.New("the value is too long for an sstable")

	// ErrFull says that an sstable holds MaxEntries.
	ErrFull = errors.New("the sstable is full; begin another")

	// ErrNoEntry says that an sstable has no entry at a position.
	ErrNoEntry = errors.New("the sstable has no entry at this position")

	// ErrDone says that a Writer was used after Finish, Abort or an error.
	ErrDone = errors.New("the writer of the sstable is done")
)
