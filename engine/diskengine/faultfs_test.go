package diskengine_test

import (
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// faultFS asks before each operation that changes the file system; an error keeps
// that from happening.
type faultFS struct {
	vfs.FS
	before func(op, name string) error
	usage  func() (vfs.DiskUsage, error)
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

func (f *faultFS) file(op, name string, open func() (vfs.File, error)) (vfs.File, error) {
	if err := f.before(op, name); err != nil {
		return nil, err
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f, name}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("create", name, func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", name, func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{d, f, name}, nil
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("reuse", name, func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *faultFS) Rename(old, name string) error {
	if err := f.before("rename", name); err != nil {
		return err
	}
	return f.FS.Rename(old, name)
}

func (f *faultFS) Remove(name string) error {
	if err := f.before("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faultFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := f.before("mkdir", dir); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, perm)
}

func (f *faultFS) Lock(name string) (io.Closer, error) {
	if err := f.before("lock", name); err != nil {
		return nil, err
	}
	return f.FS.Lock(name)
}

func (f *faultFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if f.usage != nil {
		return f.usage()
	}
	return f.FS.GetDiskUsage(path)
}

type faultFile struct {
	vfs.File
	fs   *faultFS
	name string
}

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before("write", f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.before("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.before("sync", f.name); err != nil {
		return err
	}
	return f.File.SyncData()
}
