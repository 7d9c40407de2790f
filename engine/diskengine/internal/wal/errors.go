package wal

import "errors"

var (
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the log is closed")

	// ErrStopped says that the log stopped at an error, which is wrapped too. Entries that
	// were not synced by then have an unknown outcome. The log must be opened again.
	ErrStopped = errors.New("the log stopped at an error; see to the disk and open it again")

	// ErrUnknown says that a caller left before its entry was synced: the outcome is unknown.
	ErrUnknown = errors.New("left before the log was synced: the outcome is unknown")

	// ErrFull says that the disk is full. Entries that make room may still be appended.
	ErrFull = errors.New("no space for further segments of the log; free some space on the disk")

	// ErrTooLong says that an entry is longer than Config.MaxEntry.
	ErrTooLong = errors.New("the entry is too long for the log")

	// ErrDamaged says that something durable cannot be read. The error is a *vfs.DamageError.
	ErrDamaged = errors.New("the log is damaged")
)
