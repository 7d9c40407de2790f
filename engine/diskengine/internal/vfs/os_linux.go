package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// datasync does not sync the times of the file, and so needs no journal of the file system if
// no block is new.
func datasync(f *os.File) error {
	return onFd(f, unix.Fdatasync)
}

func preallocate(f *os.File, off, n int64) error {
	err := onFd(f, func(fd int) error { return unix.Fallocate(fd, 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}

// onFd calls fn with the descriptor of an open file until no signal interrupts it.
func onFd(f *os.File, fn func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		for failed = fn(int(fd)); failed == unix.EINTR; failed = fn(int(fd)) {
		}
	})
	if err != nil {
		return fs.ErrClosed // there is no other reason
	}
	return failed
}
