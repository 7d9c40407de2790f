package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// OS is the file system of the operating system.
type OS struct{}

// Create implements FS. The file is readable and writable by its owner, readable by its group.
func (OS) Create(name string) (File, error) {
	return openOS(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements FS.
func (OS) Open(name string) (File, error) { return openOS(name, os.O_RDWR) }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return &osFile{f}, nil
}

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Link implements FS.
func (OS) Link(from, to string) error { return os.Link(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// List implements FS.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Mkdir implements FS.
func (OS) Mkdir(dir string) error { return os.Mkdir(dir, 0o750) }

// SyncDir implements FS. On Windows, which has no such call, it does nothing.
func (OS) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free implements FS.
func (OS) Free(dir string) (int64, error) {
	n, err := free(dir)
	if err != nil {
		return 0, &fs.PathError{Op: "free space of", Path: dir, Err: err}
	}
	return n, nil
}

// HolderName is the name of a file beside a lock of OS that tells people which process has it.
const HolderName = "HOLDER"

// Lock implements FS. While the lock is held there is a file HolderName beside it. The error
// of a process that cannot get the lock quotes that file.
func (OS) Lock(name string) (io.Closer, error) {
	l := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o640))
	switch ok, err := l.TryLock(); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), l.Close())
	case !ok:
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: held(name)}, l.Close())
	}
	// A person may remove the file of a lock that is held, as stale. The lock of the
	// directory, on systems that have it, keeps other processes out all the same.
	dir := flock.New(filepath.Dir(name), flock.SetFlag(os.O_RDONLY))
	if ok, err := dir.TryLock(); err == nil && !ok {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: name, Err: held(name)}, dir.Close(), l.Close())
	}
	ours, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, dir.Close(), l.Close())
	}
	return &osLock{l, dir, ours, hold(name)}, nil
}

type osLock struct {
	file, dir *flock.Flock
	ours      fs.FileInfo // of the directory
	holder    string
}

// Kept implements Keeper.
func (l *osLock) Kept() error {
	at, err := os.Stat(l.dir.Path())
	if err == nil && os.SameFile(at, l.ours) {
		return nil
	}
	return &fs.PathError{Op: "sync", Path: l.dir.Path(), Err: ErrGone}
}

func (l *osLock) Close() error {
	if l.Kept() == nil { // otherwise the file may be of another process
		_ = os.Remove(l.holder) // a leftover does no harm: the lock counts
	}
	return errors.Join(l.dir.Close(), l.file.Close())
}

// hold writes a file that says which process has a lock. The file is not durable. If it cannot
// be written there is none.
func hold(lock string) (file string) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	file = filepath.Join(filepath.Dir(lock), HolderName)
	if err := os.WriteFile(file, fmt.Appendf(nil, "pid %d on %s since %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339)), 0o640); err != nil {
		_ = os.Remove(file) // it may be of an earlier process
	}
	return file
}

// held is the error of a lock that another process has.
func held(lock string) error {
	if who := Holder(lock); who != "" {
		return fmt.Errorf("%w: %s", ErrLocked, who)
	}
	return ErrLocked
}

// Holder says which process has a lock of OS, or had it last; "": not known.
func Holder(lock string) string {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(lock), HolderName))
	line, _, whole := strings.Cut(string(text), "\n")
	if err != nil || !whole {
		return ""
	}
	return line
}

type osFile struct{ *os.File }

func (f *osFile) Sync() error { return f.wrap("sync", datasync(f.File)) }

func (f *osFile) Preallocate(off, n int64) error {
	return f.wrap("preallocate", preallocate(f.File, off, n))
}

func (f *osFile) wrap(op string, err error) error {
	var path *fs.PathError
	if err == nil || errors.As(err, &path) {
		return err
	}
	return &fs.PathError{Op: op, Path: f.Name(), Err: err}
}

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
