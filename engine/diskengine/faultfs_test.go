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
	before func(op string) error
	usage  func() (vfs.DiskUsage, error)
}

func (f *faultFS) Unwrap() vfs.FS { return f.FS }

func (f *faultFS) file(op string, open func() (vfs.File, error)) (vfs.File, error) {
	if err := f.before(op); err != nil {
		return nil, err
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f}, nil
}

func (f *faultFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("create", func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *faultFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return f.file("open", func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, opts...) })
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{d, f}, nil
}

func (f *faultFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file("reuse", func() (vfs.File, error) { return f.FS.ReuseForWrite(old, name, c) })
}

func (f *faultFS) Rename(old, name string) error {
	if err := f.before("rename"); err != nil {
		return err
	}
	return f.FS.Rename(old, name)
}

func (f *faultFS) Remove(name string) error {
	if err := f.before("remove"); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *faultFS) MkdirAll(dir string, perm os.FileMode) error {
	if err := f.before("mkdir"); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, perm)
}

func (f *faultFS) Lock(name string) (io.Closer, error) {
	if err := f.before("lock"); err != nil {
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
	fs *faultFS
}

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write"); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before("write"); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Sync() error {
	if err := f.fs.before("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.before("sync"); err != nil {
		return err
	}
	return f.File.SyncData()
}
