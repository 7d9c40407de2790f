package deletions

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Restore deletes entries of tables as the file with a number says. It passes over other
// sstables in the file. If one of tables is not in it, or its deletion bitmap is damaged, it
// returns a *vfs.DamageError, and leaves that sstable and those after it unchanged.
func Restore(fs vfs.FS, dir string, number, store uint64, tables []*sstable.Table) error {
	return read(fs, dir, number, store, func(f *file) error {
		at := make(map[uint64]row, len(f.rows))
		for _, r := range f.rows {
			at[r.table] = r
		}
		for _, r := range tables {
			row, ok := at[r.Number()]
			if !ok {
				return f.damage(headerSize, fmt.Sprintf("sstable %d is not in it", r.Number()))
			}
			if err := f.restore(row, r); err != nil {
				return err
			}
		}
		return nil
	})
}

// Verify reads the whole file with a number, compares it with its checksums, and returns the
// numbers of the sstables in it. Only Restore checks whether it fits the sstables. pace is
// called with the bytes read since the last call, and may be nil; its error ends the work.
func Verify(fs vfs.FS, dir string, number, store uint64, pace func(read int) error) (tables []uint64, err error) {
	err = read(fs, dir, number, store, func(f *file) error {
		for _, r := range f.rows {
			b, err := f.bitmap(r)
			if err == nil && pace != nil {
				err = pace(len(b))
			}
			if err != nil {
				return err
			}
			tables = append(tables, r.table)
		}
		return nil
	})
	return tables, err
}

// file is a file that is being read.
type file struct {
	vfs.File
	name string
	rows []row
	b    []byte // the buffer of bytes
}

func read(fs vfs.FS, dir string, number, store uint64, fn func(*file) error) (err error) {
	f := &file{name: Name(dir, number)}
	if f.File, err = fs.Open(f.name); err != nil {
		return err
	}
	if err = f.load(number, store); err == nil {
		err = fn(f)
	}
	return errors.Join(err, f.Close())
}

// load reads the header and the table.
func (f *file) load(number, store uint64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	b, err := f.bytes(0, min(size, headerSize))
	if err != nil {
		return err
	}
	h, off, reason, err := decodeHeader(b)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", f.name, err)
	case reason != "":
	case h.store != store:
		off, reason = 16, "deletion bitmaps of another store"
	case h.number != number:
		off, reason = 24, "another number than in its name"
	case h.length != uint64(size):
		off, reason = 32, "the file is not as long as it says"
	case headerSize+int64(h.tables)*rowSize > size:
		off, reason = 40, "the table is longer than the file"
	}
	if reason != "" {
		return f.damage(off, reason)
	}
	if b, err = f.bytes(headerSize, int64(h.tables)*rowSize); err != nil {
		return err
	}
	if crc32.Checksum(b, castagnoli) != h.table {
		return f.damage(headerSize, "the checksum of the table does not match")
	}
	if f.rows, reason = decodeTable(b, size); reason != "" {
		return f.damage(headerSize, reason)
	}
	return nil
}

// restore deletes entries of one sstable.
func (f *file) restore(at row, r *sstable.Table) error {
	if at.identity != r.Identity() || at.entries != r.Len() {
		return f.damage(headerSize, fmt.Sprintf("the deletion bitmap is of another sstable %d", at.table))
	}
	b, err := f.bitmap(at)
	if err == nil && !r.RestoreBits(b) {
		err = f.damage(at.off, fmt.Sprintf("the deletion bitmap of sstable %d is malformed", at.table))
	}
	return err
}

// bitmap reads the deletion bitmap of an sstable. It is valid until the next call.
func (f *file) bitmap(at row) ([]byte, error) {
	b, err := f.bytes(at.off, int64(at.length))
	if err == nil && crc32.Checksum(b, castagnoli) != at.checksum {
		err = f.damage(at.off, fmt.Sprintf("the checksum of the deletion bitmap of sstable %d does not match", at.table))
	}
	return b, err
}

// bytes reads n bytes at off. They are valid until the next call.
func (f *file) bytes(off, n int64) ([]byte, error) {
	if int64(cap(f.b)) < n {
		f.b = make([]byte, n)
	}
	b := f.b[:n]
	got, err := f.ReadAt(b, off)
	switch {
	case int64(got) == n:
		return b, nil
	case err == nil || errors.Is(err, io.EOF):
		return nil, f.damage(off+int64(got), "the file ends")
	}
	return nil, fmt.Errorf("read %s: %w", f.name, err)
}

func (f *file) damage(off int64, reason string) error {
	return &vfs.DamageError{What: ErrDamaged, File: f.name, Offset: off, Reason: reason}
}
