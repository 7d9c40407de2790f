package backup

import "errors"

var (
	// ErrNone says that a directory is no backup.
	ErrNone = errors.New("this is no backup")

	// ErrUnfinished says that a first backup to a directory was never finished.
	ErrUnfinished = errors.New("the backup was never finished: make it again")

	// ErrOther says that a backup is one of another store.
	ErrOther = errors.New("this is a backup of another store")

	// ErrTaken says that a directory holds something.
	ErrTaken = errors.New("the directory is not empty")

	// ErrDamaged says that a backup cannot be read.
	ErrDamaged = errors.New("the backup is damaged")

	// ErrNewer says that a newer release wrote a backup.
	ErrNewer = errors.New("the backup was written by a newer release; use that one")
)
