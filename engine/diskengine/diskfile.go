package diskengine

import (
	"io"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskFile is a file, or directory, of a disk.
type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// Write implements vfs.File.
func (f *diskFile) Write(p []byte) (int, error) {
	n := 0
	err := f.disk.change("write", f.name, true, func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return f.wrote(n, len(p), err)
}

// WriteAt implements vfs.File.
func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	n := 0
	err := f.disk.change("write", f.name, true, func() error {
		m, err := f.File.WriteAt(p[n:], off+int64(n))
		n += m
		return err
	})
	return f.wrote(n, len(p), err)
}

func (f *diskFile) wrote(n, all int, err error) (int, error) {
	f.disk.measured.wrote(f.name, n)
	if err == errFrozen {
		return all, nil
	}
	return n, err
}

// Sync implements vfs.File.
func (f *diskFile) Sync() error {
	return f.sync(f.File.Sync)
}

// SyncData implements vfs.File.
func (f *diskFile) SyncData() error {
	return f.sync(f.File.SyncData)
}

func (f *diskFile) sync(fn func() error) error {
	return f.disk.unlessFrozen("sync", f.name, false, func() error {
		start := time.Now()
		err := fn()
		f.disk.measured.synced(f.name, start)
		return err
	})
}

// SyncTo implements vfs.File.
func (f *diskFile) SyncTo(length int64) (full bool, err error) {
	err = f.sync(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate implements vfs.File.
func (f *diskFile) Preallocate(off, length int64) error {
	if f.disk.isFrozen() {
		return nil
	}
	return f.File.Preallocate(off, length)
}

// Stat implements vfs.File.
func (f *diskFile) Stat() (info vfs.FileInfo, err error) {
	err = f.disk.change("stat", f.name, true, func() (err error) { info, err = f.File.Stat(); return err })
	if err == errFrozen {
		return ghost{f.disk.PathBase(f.name)}, nil
	}
	return info, err
}

// Close implements vfs.File. It closes the file on a frozen disk too.
func (f *diskFile) Close() error {
	err := f.File.Close()
	if f.disk.isFrozen() {
		return nil
	}
	return f.disk.unlessFrozen("close", f.name, false, func() error { return err })
}

// ghost is a file that was not made because the disk is frozen: it takes
// everything and holds nothing.
type ghost struct{ name string }

func (ghost) Close() error                           { return nil }
func (ghost) Read([]byte) (int, error)               { return 0, io.EOF }
func (ghost) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (ghost) Write(p []byte) (int, error)            { return len(p), nil }
func (ghost) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (ghost) Preallocate(int64, int64) error         { return nil }
func (ghost) Sync() error                            { return nil }
func (ghost) SyncData() error                        { return nil }
func (ghost) SyncTo(int64) (bool, error)             { return true, nil }
func (ghost) Prefetch(int64, int64) error            { return nil }
func (ghost) Fd() uintptr                            { return vfs.InvalidFd }
func (g ghost) Stat() (vfs.FileInfo, error)          { return g, nil }

func (g ghost) Name() string         { return g.name }
func (ghost) Size() int64            { return 0 }
func (ghost) Mode() os.FileMode      { return 0o644 }
func (ghost) ModTime() time.Time     { return time.Time{} }
func (ghost) IsDir() bool            { return false }
func (ghost) Sys() any               { return nil }
func (ghost) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
