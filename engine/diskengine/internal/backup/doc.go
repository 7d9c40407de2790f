// Package backup keeps a copy of a store in a directory. Take brings it up to date, Restore
// makes a store of it, Salvage makes a store of what can be read of it, and Check verifies it.
//
// # The idea
//
// Sstables are never changed once they are written. They are in one directory, and each backup
// adds the new ones: by links, or by copies if the store is on another file system. Manifest and
// log are copied each time to a directory with a new number, since segments of the log are
// written to again. Then a small file that says which number
// counts is replaced. So a backup that is cut off, by a crash or a full disk, leaves the one
// before as it was. The next one removes what it left.
//
// # What may be relied on
//
//   - When Take has returned, the whole backup is durable. The store is not changed.
//   - New files are verified before they count, so that a damaged store does not replace a
//     sound backup.
//   - A directory that holds anything else is refused, and so is a backup of another store.
//   - Restore checks the backup first, as package verify does, and writes only to an empty
//     directory. Until it has ended the store there cannot be opened.
//   - One call at a time works on a backup: others get vfs.ErrLocked.
//
// The format is in docs/formats/backup.md.
package backup

import "errors"

var (
	// ErrNone says that a directory is no backup.
	ErrNone = errors.New("this is no backup")

	// ErrUnfinished says that a first backup to a directory was never finished.
	ErrUnfinished = errors.New("the backup was never finished: make it again")

	// ErrOther says that a backup is of another store.
	ErrOther = errors.New("this is a backup of another store")

	// ErrLater says that a backup has what the store does not: the store was restored from an
	// older backup, or salvaged.
	ErrLater = errors.New("the backup is newer than this store, which was restored from an older backup, or salvaged")

	// ErrDamaged says that a backup cannot be read.
	ErrDamaged = errors.New("the backup is damaged")

	// ErrSource says that the store to be backed up cannot be read.
	ErrSource = errors.New("the store is damaged")

	// ErrCopy says that a file of a store is sound, but its copy is not.
	ErrCopy = errors.New("a copy differs from its original")
)
