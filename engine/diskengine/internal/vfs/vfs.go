// Package vfs is the seam between the store's formats and the file system: FS and File
// are all that its log, sstables and manifest ask of it. OS is the one of the operating
// system; package vfstest has one in memory that loses power, fails and fills up.
//
// What the callers of this package may rely on, and no more:
//
//   - A write is durable after File.Sync of that file has returned nil. Before, each
//     sector of it may be on the disk or not, in any order, across all files, and so may
//     be a change of size. A sector is the old or the new one, never a mixture.
//   - A name that was made, changed or removed is so durably after FS.SyncDir of its
//     directory has returned nil. Before, each such change may be there or not, in any
//     order. Syncing a file does not sync its name.
//   - A rename within a directory is one step: a crash leaves the old or the new name,
//     never none and never both.
//   - A sync that failed has lost what it was to write, and the next one does not try
//     again: a caller that meets it stops, and looks at the disk anew.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// FS is a file system. Its methods may be called from many goroutines. Names are paths as
// package path/filepath has them. An error names the file, and is one that errors.Is finds
// in io/fs or syscall where there is such a one.
type FS interface {
	// Create makes a new, empty file and opens it. A name that is taken is
	// fs.ErrExist: nothing is ever emptied by mistake.
	Create(name string) (File, error)

	// Open opens a file that is there, to read and to write.
	Open(name string) (File, error)

	// Rename gives a file another name, in place of one that may have had it. A caller that
	// has either open keeps it.
	Rename(from, to string) error

	// Link gives a file one more name. A name that is taken is fs.ErrExist.
	Link(from, to string) error

	// Remove removes a name, or an empty directory. The space of a file is free when
	// its last name is gone and it is not open.
	Remove(name string) error

	// List returns the names in a directory, sorted, without the path to them.
	List(dir string) ([]string, error)

	// Mkdir makes a directory in one that is there. A name that is taken is fs.ErrExist.
	Mkdir(dir string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error

	// Free is how many bytes a caller without privileges may still write where dir
	// is, or errors.ErrUnsupported.
	Free(dir string) (int64, error)

	// Lock makes a file, if need be, and locks it until it is closed or the process
	// ends. It never waits: ErrLocked if another has it. What it returns may be a Keeper.
	Lock(name string) (io.Closer, error)
}

// Keeper is a lock that can tell whether its directory is where it was: else Kept fails with
// ErrGone.
type Keeper interface{ Kept() error }

// File is an open file. Its methods may be called from many goroutines; what overlapping
// ones do to each other is up to their callers.
type File interface {
	io.ReaderAt // at the end of the file, io.EOF
	io.WriterAt // beyond the end, what is between reads as zeros

	// Sync makes durable what has been written, and the size, but not the name.
	Sync() error

	// Preallocate takes space for n bytes from off on, which read as zeros unless they
	// were written; the size is then at least off+n. Writing there needs no more space. A
	// file system that cannot says errors.ErrUnsupported.
	Preallocate(off, n int64) error

	// Truncate sets the size. What it adds reads as zeros and has no space taken.
	Truncate(size int64) error

	Size() (int64, error)
	Close() error
}

// ErrGone says that a directory is not where it was when its lock was taken.
var ErrGone = errors.New("the directory was deleted or moved while it was in use")

// ErrLocked says that another process, or another part of this one, has a lock.
var ErrLocked = errors.New("the file is locked by another")

// MkdirAll makes a directory and those above it that are missing, durably. One that is
// there is no error.
func MkdirAll(f FS, dir string) error {
	dir = filepath.Clean(dir)
	if _, err := f.List(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := filepath.Dir(dir)
	if up == dir {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrNotExist}
	}
	if err := MkdirAll(f, up); err != nil {
		return err
	}
	if err := f.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.SyncDir(up)
}

// Sweep removes the names in a directory that are not needed, durably. One that cannot be removed keeps
// no other from it.
func Sweep(f FS, dir string, needless func(name string) bool) error {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if needless(name) {
			errs = append(errs, f.Remove(filepath.Join(dir, name)))
		}
	}
	if len(errs) > 0 {
		errs = append(errs, f.SyncDir(dir))
	}
	return errors.Join(errs...)
}

// IsFull reports whether an error says that there is no space left, on the disk or for
// this user.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || isFull(err)
}
