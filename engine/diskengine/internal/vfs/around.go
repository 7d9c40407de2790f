package vfs

import (
	"errors"
	"io"
	"syscall"
)

// ErrSector is the What of a *DamageError for a part of a file that the disk cannot read.
var ErrSector = errors.New("a sector cannot be read")

func unreadable(err error) bool { return errors.Is(err, syscall.EIO) || errors.Is(err, ErrSector) }

const page = 4 << 10 // is read at a time if a larger read fails

// Unread says which pages of a part of a file could not be read.
type Unread struct {
	Pages int   // how many, of 4 KiB each
	At    int64 // where the first one is
	Err   error // its error; nil: all was read
}

// ReadAround is file.ReadAt, except that pages that the disk cannot read are zeros.
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
