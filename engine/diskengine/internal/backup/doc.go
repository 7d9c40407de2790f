// Package backup keeps a copy of a store in a directory: Take brings it to what the store is now,
// Restore makes a store of it, Salvage one of what can be read of it, Check verifies it.
//
// # The idea
//
// Sstables and deletion bitmaps are never changed once they are written. They are in one directory, and each backup
// adds those that are new: linked, or copied where the store is on another file system. Manifest and log
// are copied each time to a directory with a new number; segments of the log are written to again. Then
// one small file that says which number counts takes the place of the one before. So a backup that is
// cut off, by a crash or a full disk, leaves the one before as it was; the next one removes what it left.
//
// # What may be relied on
//
//   - When Take has returned, all of the backup is durable. Nothing of the store is changed.
//   - What is new is verified before it counts, so that a store that is damaged does not take the place
//     of a backup that is sound.
//   - A directory that holds anything else is refused, and so is a backup of another store.
//   - Restore checks the backup first, as package verify does, and writes only to a directory that is
//     empty. Until it has ended the store there cannot be opened.
//   - One at a time works on a backup: others get vfs.ErrLocked.
//
// The format is in docs/formats/backup.md.
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
	// salvaged.
	ErrLater = errors.New("the backup is of a later instant than this store, which was restored from an older one, or salvaged")

	// ErrDamaged says that a backup cannot be read.
	ErrDamaged = errors.New("the backup is damaged")

	// ErrSource says that the store of which a backup is made cannot be read.
	ErrSource = errors.New("the store is damaged")

	// ErrCopy says that a file of a store is sound, and its copy is not.
	ErrCopy = errors.New("a copy is not what was copied")

	// ErrVersion says that another release wrote a backup.
	ErrVersion = errors.New("the backup was written by another release; use that one")
)
