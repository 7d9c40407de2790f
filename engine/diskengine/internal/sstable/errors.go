package sstable

import "errors"

var (
	// ErrClosed says that the sstable was closed.
	ErrClosed = errors.New("the run is closed")

	// ErrDamaged says that something durable cannot be read. The error is a *vfs.DamageError.
	ErrDamaged = errors.New("a run is damaged")

	// ErrNewer says that a newer release wrote the sstable.
	ErrNewer = errors.New("the run was written by a newer release; use that one")

	// ErrOlder says that an earlier release wrote the sstable, in a format that is not read any more.
	ErrOlder = errors.New("the run was written by an earlier release, in a format that is not read any more")

	// ErrOrder says that entries were not added in their order.
	ErrOrder = errors.New("entries must be added to a run in the order of queue, time and id")

	// ErrTooLong says that a value is longer than MaxValue.
	ErrTooLong = errors.New("the value is too long for a run")

	// ErrFull says that an sstable holds MaxEntries.
	ErrFull = errors.New("the run is full; begin another")

	// ErrNoEntry says that an sstable has no entry at a position.
	ErrNoEntry = errors.New("the run has no entry at this position")

	// ErrDone says that a Writer was used after Finish, Abort or an error.
	ErrDone = errors.New("the writer of the run is done")
)
