// Package vfs is the seam between the store's formats and the file system: the log, sstables
// and manifest use only FS and File. OS is the operating system's; package disktest has one in
// memory that loses power, fails and fills up. The package also has what the files of a store
// have in common: how their headers begin (SealHeader), and numbers as names (Numbered).
//
// The callers of this package may rely on this, and on no more:
//
//   - A write is durable once File.Sync of that file has returned nil. Before, each sector of
//     it, and a change of size, may be on the disk or not, in any order across all files. A
//     sector is the old or the new one, never a mixture.
//   - The making, changing or removing of a name is durable once FS.SyncDir of its directory
//     has returned nil. Before, each such change may be there or not, in any order. Syncing a
//     file does not sync its name.
//   - A rename within a directory is one step: a crash leaves the old or the new name, never
//     none and never both.
//   - A sync that fails has lost what it should have written, and the next one does not try
//     again. So the caller must stop, and read the disk again.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// FS is a file system. Many goroutines may call its methods. Names are paths of package
// path/filepath. An error names the file, and wraps the error of io/fs or syscall if there is
// a fitting one.
type FS interface {
	// Create makes a new, empty file and opens it. If the name is taken it returns an
	// fs.ErrExist: no file is ever emptied by mistake.
	Create(name string) (File, error)

	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)

	// Rename gives a file another name, and replaces a file that has that name. A caller that
	// has either file open can go on using it.
	Rename(from, to string) error

	// Link gives a file one more name. If the name is taken it returns an fs.ErrExist.
	Link(from, to string) error

	// Remove removes a name, or an empty directory. The space of a file is free once its last
	// name is gone and it is not open.
	Remove(name string) error

	// List returns the names in a directory, sorted, without the path to them.
	List(dir string) ([]string, error)

	// Mkdir makes a directory in an existing one. If the name is taken it returns an
	// fs.ErrExist.
	Mkdir(dir string) error

	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error

	// Free is how many bytes a caller without privileges may still write on the file system of
	// dir, or errors.ErrUnsupported.
	Free(dir string) (int64, error)

	// Lock makes a file, if need be, and locks it until the result is closed or the process
	// ends. It never waits: if another has the lock it returns ErrLocked. The result may be a
	// Keeper.
	Lock(name string) (io.Closer, error)
}

// Keeper is a lock that can tell whether its directory is still where it was: if not, Kept
// returns ErrGone.
type Keeper interface{ Kept() error }

// File is an open file. Many goroutines may call its methods; the callers must make sure that
// overlapping calls do no harm.
type File interface {
	io.ReaderAt // io.EOF at the end of the file
	io.WriterAt // after a write beyond the end, the bytes between read as zeros

	// Sync makes all that was written, and the size, durable, but not the name.
	Sync() error

	// Preallocate reserves space for n bytes from off on, which read as zeros unless they were
	// written. The size is then at least off+n. Writing there needs no more space. A file
	// system that cannot do it returns errors.ErrUnsupported.
	Preallocate(off, n int64) error

	Size() (int64, error)
	Close() error
}

// ErrGone says that a directory is not where it was when its lock was taken.
var ErrGone = errors.New("the directory was deleted or moved while it was in use")

// ErrLocked says that another process, or another part of this one, has a lock.
var ErrLocked = errors.New("the file is locked by another")

// MkdirAll makes a directory and the missing ones above it, durably. It is no error if the
// directory is there.
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

// Sweep removes the needless names in a directory, durably. If one cannot be removed it goes
// on with the others.
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
