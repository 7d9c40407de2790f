package backup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/deletions"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// kind is a kind of files that are never changed: sstables or deletion bitmaps.
type kind struct {
	name   func(dir string, number uint64) string
	verify func(f vfs.FS, dir string, number, store uint64, pace func(int) error) error
}

var (
	ofTables = kind{sstable.Name, func(f vfs.FS, dir string, number, store uint64, pace func(int) error) (err error) {
		r, err := sstable.Open(f, dir, number, &sstable.Config{ID: store})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		return r.Verify(pace)
	}}
	ofDeletions = kind{deletions.Name, func(f vfs.FS, dir string, number, store uint64, pace func(int) error) error {
		_, err := deletions.Verify(f, dir, number, store, pace)
		return err
	}}
)

// verify reads a whole file that was put into the backup. The error of a damaged file names
// the file of the store, unless only the copy is damaged.
func (t *taking) verify(k *kind, number uint64, copied bool) error {
	err := k.verify(t.fs, t.sstables(), number, t.h.store, t.pace)
	damage := (*vfs.DamageError)(nil)
	if !errors.As(err, &damage) {
		return err
	}
	what, file := ErrSource, filepath.Join(t.src.Tables, filepath.Base(damage.File))
	if copied {
		err := k.verify(t.fs, t.src.Tables, number, t.h.store, t.pace)
		if err == nil {
			what, file = ErrCopy, damage.File
		} else if !errors.As(err, &damage) {
			return err
		}
	}
	return &vfs.DamageError{What: what, File: file, Offset: damage.Offset, Reason: damage.Reason}
}

// identitySize is how many bytes at the start of a file tell it from all others with its
// number.
const identitySize = 64

// same reports whether two files are the same sstable or the same deletion bitmaps. The first
// bytes decide: those of an sstable have a random number, those of deletion bitmaps a checksum
// over all of them.
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
