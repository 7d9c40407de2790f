package diskengine_test

import (
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sizeFS is a file system that holds so many bytes and then is full.
type sizeFS struct {
	vfs.FS
	mu    sync.Mutex
	size  int64
	used  int64
	files map[string]int64
}

func newSizeFS(size int64) *sizeFS {
	return &sizeFS{FS: vfs.NewMem(), size: size, files: make(map[string]int64)}
}

// grow makes a file at least so long, or as long as there is room.
func (s *sizeFS) grow(name string, to int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more := max(0, to-s.files[name])
	fits := min(more, s.size-s.used)
	s.files[name] += fits
	s.used += fits
	if fits < more {
		return to - (more - fits), syscall.ENOSPC
	}
	return to, nil
}

func (s *sizeFS) move(old, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= s.files[name]
	s.files[name] = s.files[old]
	delete(s.files, old)
}

func (s *sizeFS) gone(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f, n := range s.files {
		if f == name || strings.HasPrefix(f, name+"/") {
			s.used -= n
			delete(s.files, f)
		}
	}
}

func (s *sizeFS) free() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size - s.used
}

func (s *sizeFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	s.gone(name)
	return &sizeFile{File: f, fs: s, name: name}, nil
}

func (s *sizeFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(old, name, c)
	if err != nil {
		return nil, err
	}
	s.move(old, name)
	return &sizeFile{File: f, fs: s, name: name}, nil
}

func (s *sizeFS) Rename(old, name string) error {
	err := s.FS.Rename(old, name)
	if err == nil {
		s.move(old, name)
	}
	return err
}

func (s *sizeFS) Remove(name string) error {
	err := s.FS.Remove(name)
	if err == nil {
		s.gone(name)
	}
	return err
}

func (s *sizeFS) RemoveAll(name string) error {
	err := s.FS.RemoveAll(name)
	if err == nil {
		s.gone(name)
	}
	return err
}

func (s *sizeFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(s.free()), TotalBytes: uint64(s.size)}, nil
}

func (s *sizeFS) Unwrap() vfs.FS { return s.FS }

type sizeFile struct {
	vfs.File
	fs   *sizeFS
	name string
	off  int64
}

func (f *sizeFile) Write(p []byte) (int, error) {
	to, full := f.fs.grow(f.name, f.off+int64(len(p)))
	n, err := f.File.Write(p[:to-f.off])
	f.off += int64(n)
	if err == nil {
		err = full
	}
	return n, err
}

func (f *sizeFile) WriteAt(p []byte, off int64) (int, error) {
	to, full := f.fs.grow(f.name, off+int64(len(p)))
	n, err := f.File.WriteAt(p[:max(0, to-off)], off)
	if err == nil {
		err = full
	}
	return n, err
}

func (f *sizeFile) Preallocate(off, length int64) error {
	_, err := f.fs.grow(f.name, off+length)
	return err
}
