package check

import (
	"errors"
	"io"
	"syscall"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// errSector says that the disk cannot read a part of a file. The error is a *disk.DamageError.
var errSector = errors.New("a sector cannot be read")

const page = 4 << 10 // is read at once where more cannot be

// surface is a file system with sectors that the disk cannot read any more: that is damage as any other.
// While zeros is set they read as zeros, so that what stands around them can be read.
type surface struct {
	disk.FS
	zeros bool
	also  map[string]string // where files are that have lost their names
}

// Zeroed is a file system on which sectors that cannot be read are zeros.
func Zeroed(f disk.FS) disk.FS { return &surface{FS: f, zeros: true} }

// Open implements disk.FS.
func (s *surface) Open(name string) (disk.File, error) {
	if other, ok := s.also[name]; ok {
		name = other
	}
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &scratched{f, s, name}, nil
}

type scratched struct {
	disk.File
	on   *surface
	name string
}

// ReadAt implements disk.File.
func (f *scratched) ReadAt(b []byte, off int64) (n int, err error) {
	n, err = f.File.ReadAt(b, off)
	if !errors.Is(err, syscall.EIO) {
		return n, err
	}
	n = 0
	for n < len(b) {
		at := off + int64(n)
		part := b[n:min(len(b), n+int(page-at%page))]
		k, err := f.File.ReadAt(part, at)
		if errors.Is(err, syscall.EIO) {
			if !f.on.zeros {
				return n, &disk.DamageError{What: errSector, File: f.name, Offset: at, Reason: "the disk cannot read it: " + err.Error()}
			}
			size, serr := f.Size()
			if serr != nil {
				return n, serr
			}
			k, err = int(max(0, min(int64(len(part)), size-at))), nil
			clear(part[:k])
			if k < len(part) {
				err = io.EOF
			}
		}
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
