package verify

import (
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// surface is a file system with sectors that the disk cannot read any more: that is damage as any other.
// While zeros is set they read as zeros, so that what stands around them can be read.
type surface struct {
	disk.FS
	zeros bool
}

// Open implements disk.FS.
func (s *surface) Open(name string) (disk.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &scratched{f, name, s.zeros}, nil
}

type scratched struct {
	disk.File
	name  string
	zeros bool
}

// ReadAt implements disk.File.
func (f *scratched) ReadAt(b []byte, off int64) (int, error) {
	n, u, err := disk.ReadAround(f.File, b, off)
	if u.Err != nil && !f.zeros {
		return int(u.At - off), &disk.DamageError{What: disk.ErrSector, File: f.name, Offset: u.At, Reason: "the disk cannot read it: " + u.Err.Error()}
	}
	return n, err
}
