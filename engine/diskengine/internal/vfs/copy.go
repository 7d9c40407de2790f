package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"syscall"
)

const (
	copySlice = 256 << 10 // bytes of a write
	copySync  = 512 << 10 // bytes between two syncs, so that the last one is short for all users of the disk
)

// LinkOrCopy gives a file that is never changed another name. If the file system cannot link
// it, the file is copied: copied is how many bytes that took.
func LinkOrCopy(f FS, from, to string, pace func(written int) error) (copied int64, err error) {
	err = f.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || IsFull(err) || errors.Is(err, syscall.EIO) { // which may have made the link
		return 0, err
	}
	return Copy(f, from, to, math.MaxInt64, pace)
}

// Copy copies a file, or at most so many bytes of it. The copy is durable, but not its name.
func Copy(f FS, from, to string, most int64, pace func(written int) error) (copied int64, err error) {
	in, err := f.Open(from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := f.Create(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	b := make([]byte, copySlice)
	for synced := int64(0); ; {
		n, err := in.ReadAt(b[:min(copySlice, most-copied)], copied)
		if err != nil && !errors.Is(err, io.EOF) {
			return copied, err
		}
		if n == 0 {
			return copied, out.Sync()
		}
		if _, err := out.WriteAt(b[:n], copied); err != nil {
			return copied, err
		}
		if copied += int64(n); copied-synced >= copySync {
			synced = copied
			if err := out.Sync(); err != nil {
				return copied, err
			}
		}
		if err := pace(n); err != nil {
			return copied, err
		}
	}
}

// ReadStart reads the first bytes of a file, at most so many, and returns the file's size.
func ReadStart(f FS, name string, most int64) (b []byte, size int64, err error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size, err = file.Size(); err != nil {
		return nil, 0, err
	}
	b = make([]byte, min(size, most))
	_, err = file.ReadAt(b, 0)
	return b, size, err
}

// WriteFile writes a new file. The file is durable, but not its name. After an error there is no
// file, unless it could not be removed.
func WriteFile(f FS, name string, b []byte) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	for off := 0; err == nil && (off == 0 || off < len(b)); off += copySync {
		_, err = file.WriteAt(b[off:min(len(b), off+copySync)], int64(off))
		if err == nil {
			err = file.Sync()
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, f.Remove(name))
	}
	return err
}
