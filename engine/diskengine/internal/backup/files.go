package backup

import (
	"bytes"
	"errors"
	"io"
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

// identitySize is how many bytes at the start of an sstable tell it from all others with its
// number.
const identitySize = 64

// same reports whether two files are the same sstable. The first bytes decide: they have a random
// number.
func (t *taking) same(from, to string) (size int64, same bool, err error) {
	size, head, err := t.stat(from)
	if err != nil {
		return 0, false, err
	}
	sizeTo, headTo, err := t.stat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return size, false, nil
	}
	return size, size == sizeTo && size >= identitySize && bytes.Equal(head, headTo), err
}

// stat returns the size of a file and its first bytes.
func (t *taking) stat(name string) (size int64, head []byte, err error) {
	file, err := t.fs.Open(name)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if size, err = file.Size(); err != nil {
		return 0, nil, err
	}
	head = make([]byte, min(size, identitySize))
	if _, err = file.ReadAt(head, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return size, head, err
}
