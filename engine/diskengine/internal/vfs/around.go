package vfs

import (
	"errors"
	"io"
	"syscall"
)

// ErrSector says that a part of a file cannot be read, of an error that is a *DamageError.
var ErrSector = errors.New("a sector cannot be read")

func unreadable(err error) bool { return errors.Is(err, syscall.EIO) || errors.Is(err, ErrSector) }

const page = 4 << 10 // is read at once where more cannot be

// Unread is what could not be read of a part of a file.
type Unread struct {
	Pages int   // of 4 KiB
	At    int64 // the first of them
	Err   error // of that; nil: all was read
}

// ReadAround is file.ReadAt, except that pages which the disk cannot read are zeros.
func ReadAround(file File, b []byte, off int64) (n int, u Unread, err error) {
	n, err = file.ReadAt(b, off)
	if !unreadable(err) {
		return n, u, err
	}
	for n, err = 0, nil; n < len(b) && err == nil; {
		at := off + int64(n)
		part, k := b[n:min(len(b), n+int(page-at%page))], 0
		if k, err = file.ReadAt(part, at); unreadable(err) {
			if u.Pages++; u.Err == nil {
				u.At, u.Err = at, err
			}
			k, err = blank(file, part, at)
		}
		n += k
	}
	return n, u, err
}

// blank is ReadAt of a file that holds zeros.
func blank(file File, b []byte, off int64) (n int, err error) {
	size, err := file.Size()
	if err != nil {
		return 0, err
	}
	n = int(max(0, min(int64(len(b)), size-off)))
	if clear(b[:n]); n < len(b) {
		err = io.EOF
	}
	return n, err
}
