package check

import (
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

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
func (f *scratched) ReadAt(b []byte, off int64) (int, error) {
	n, u, err := disk.ReadAround(f.File, b, off)
	if u.Err != nil && !f.on.zeros {
		return int(u.At - off), &disk.DamageError{What: disk.ErrSector, File: f.name, Offset: u.At, Reason: "the disk cannot read it: " + u.Err.Error()}
	}
	return n, err
}
