package verify

import (
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// surface is a file system with sectors that the disk cannot read any more: that is damage as any other.
// While zeros is set they read as zeros, so that what is around them can be read.
type surface struct {
	vfs.FS
	zeros bool
}

// Open implements vfs.FS.
func (s *surface) Open(name string) (vfs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &scratched{f, name, s.zeros}, nil
}

type scratched struct {
	vfs.File
	name  string
	zeros bool
}

// ReadAt implements vfs.File.
func (f *scratched) ReadAt(b []byte, off int64) (int, error) {
	n, u, err := vfs.ReadAround(f.File, b, off)
	if u.Err != nil && !f.zeros {
		return int(u.At - off), &vfs.DamageError{What: vfs.ErrSector, File: f.name, Offset: u.At, Reason: "the disk cannot read it: " + u.Err.Error()}
	}
	return n, err
}
