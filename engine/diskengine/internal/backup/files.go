package backup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

const (
	copySlice = 256 << 10 // bytes in a write
	copySync  = 512 << 10 // bytes between two syncs, so that the last one is short for all who use the disk
)

// readFile reads a file, or its first most bytes.
func readFile(f disk.FS, name string, most int) (b []byte, err error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b = make([]byte, most)
	n, err := file.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// writeFile makes a file durable, but not its name.
func writeFile(f disk.FS, name string, b []byte) error {
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(b, 0)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// files puts files into other places.
type files struct {
	fs   disk.FS
	pace func(written int) error

	n             int
	bytes, copied int64
}

// link gives a file that is never changed another name: of one of the same contents, if that is given
// and there is one, which was verified when it came there. Else it is fresh, and copied where the file
// system cannot link it.
func (x *files) link(from, like, to string) (fresh bool, err error) {
	if like != "" {
		same, err := x.same(from, like)
		if err != nil {
			return false, err
		}
		if same && x.fs.Link(like, to) == nil {
			return false, x.linked(to)
		}
	}
	err = x.fs.Link(from, to)
	switch {
	case err == nil:
		return true, x.linked(to)
	case errors.Is(err, fs.ErrNotExist) || disk.IsFull(err):
		return false, err
	}
	return true, x.copy(from, to)
}

func (x *files) linked(name string) error {
	size, _, err := x.stat(name)
	x.n, x.bytes = x.n+1, x.bytes+size
	return err
}

// markSize is how many bytes at the start of a run or of marks tell it from all others of its number.
const markSize = 64

// same reports whether two files are the same run or the same marks. The first bytes tell: of a run
// they hold a random number, of marks the checksum of all that is in them.
func (x *files) same(a, b string) (bool, error) {
	sizeB, headB, err := x.stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	sizeA, headA, err := x.stat(a)
	return sizeA == sizeB && sizeA >= markSize && bytes.Equal(headA, headB), err
}

// stat returns the size of a file and its first bytes.
func (x *files) stat(name string) (size int64, head []byte, err error) {
	file, err := x.fs.Open(name)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size, err = file.Size(); err != nil {
		return 0, nil, err
	}
	head = make([]byte, min(size, markSize))
	if _, err = file.ReadAt(head, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return size, head, err
}

// copy copies a file durably, but for its name.
func (x *files) copy(from, to string) (err error) {
	in, err := x.fs.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := x.fs.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	b := make([]byte, copySlice)
	for off, synced := int64(0), int64(0); ; {
		n, err := in.ReadAt(b, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			x.n++
			return out.Sync()
		}
		if _, err := out.WriteAt(b[:n], off); err != nil {
			return err
		}
		off, x.bytes, x.copied = off+int64(n), x.bytes+int64(n), x.copied+int64(n)
		if off-synced >= copySync {
			synced = off
			if err := out.Sync(); err != nil {
				return err
			}
		}
		if err := x.pace(n); err != nil {
			return err
		}
	}
}
