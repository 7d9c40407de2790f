package backup

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// verify reads a whole sstable that was put into the backup. The error of a damaged one names
// the file of the store, unless only the copy is damaged.
func (t *taking) verify(number uint64, copied bool) error {
	err := t.read(t.sstables(), number)
	damage := (*vfs.DamageError)(nil)
	if !errors.As(err, &damage) {
		return err
	}
	what, file := ErrSource, filepath.Join(t.src.Tables, filepath.Base(damage.File))
	if copied {
		err := t.read(t.src.Tables, number)
		if err == nil {
			what, file = ErrCopy, damage.File
		} else if !errors.As(err, &damage) {
			return err
		}
	}
	return &vfs.DamageError{What: what, File: file, Offset: damage.Offset, Reason: damage.Reason}
}

// read reads and verifies a whole sstable.
func (t *taking) read(dir string, number uint64) (err error) {
	r, err := sstable.Open(t.fs, dir, number, &sstable.Config{ID: t.h.store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.Verify(t.pace)
}

// same reports whether two files are the same sstable. The headers decide: they have a random
// number.
func (t *taking) same(from, to string) (size int64, same bool, err error) {
	head, size, err := vfs.ReadStart(t.fs, from, sstable.HeaderSize)
	if err != nil {
		return 0, false, err
	}
	headTo, sizeTo, err := vfs.ReadStart(t.fs, to, sstable.HeaderSize)
	if errors.Is(err, fs.ErrNotExist) {
		return size, false, nil
	}
	return size, size == sizeTo && size >= sstable.HeaderSize && bytes.Equal(head, headTo), err
}
