package verify

import (
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// surface is a file system on which a sector that the disk cannot read is damage like any
// other. If zeros is set such a sector reads as zeros, so that the bytes around it can be
// read.
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
