package backup

import "errors"

var (
	// ErrNone says that a directory is no backup.
	ErrNone = errors.New("this is no backup")

	// ErrUnfinished says that a first backup to a directory was never finished.
	ErrUnfinished = errors.New("the backup was never finished: make it again")

	// ErrOther says that a backup is one of another store.
	ErrOther = errors.New("this is a backup of another store")

	// ErrLater says that a backup goes on where the store does not: that was restored from an older one, or
	// repaired.
	ErrLater = errors.New("the backup is of a later instant than this store, which was restored from an older one, or repaired")

	// ErrTaken says that a directory holds something.
	ErrTaken = errors.New("the directory is not empty")

	// ErrDamaged says that a backup cannot be read.
	ErrDamaged = errors.New("the backup is damaged")

	// ErrSource says that the store of which a backup is made cannot be read.
	ErrSource = errors.New("the store is damaged")

	// ErrCopy says that a file of a store is sound, and its copy is not.
	ErrCopy = errors.New("a copy is not what was copied")

	// ErrNewer says that a newer release wrote a backup.
	ErrNewer = errors.New("the backup was written by a newer release; use that one")
)
