package backup

import (
	"errors"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// kind is one of the kinds of files that are never changed.
type kind struct {
	name   func(dir string, number uint64) string
	verify func(f disk.FS, dir string, number, store uint64, pace func(int) error) error
}

var (
	ofRuns = kind{run.Name, func(f disk.FS, dir string, number, store uint64, pace func(int) error) (err error) {
		r, err := run.Open(f, dir, number, &run.Config{ID: store})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		return r.Verify(pace)
	}}
	ofMarks = kind{marks.Name, func(f disk.FS, dir string, number, store uint64, pace func(int) error) error {
		_, err := marks.Verify(f, dir, number, store, pace)
		return err
	}}
)

// verify reads all of a file that was put into a directory. One that is not sound is told by its name
// in the store, unless only the copy is so.
func (x *files) verify(k *kind, store, number uint64, from, to string, copied bool) error {
	err := k.verify(x.fs, to, number, store, x.pace)
	damage := (*disk.DamageError)(nil)
	if !errors.As(err, &damage) {
		return err
	}
	what, file := ErrSource, filepath.Join(from, filepath.Base(damage.File))
	if copied {
		err := k.verify(x.fs, from, number, store, x.pace)
		if err == nil {
			what, file = ErrCopy, damage.File
		} else if !errors.As(err, &damage) {
			return err
		}
	}
	return &disk.DamageError{What: what, File: file, Offset: damage.Offset, Reason: damage.Reason}
}
