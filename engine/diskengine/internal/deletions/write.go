package deletions

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	outSlice  = 128 << 10 // the most bytes of a write
	syncBytes = 8 << 20   // written between two syncs, so that the last one is short for all users of the disk
)

// Write writes the deletion bitmaps of some sstables to the file with a number, in the store
// with the id store. It returns how many live entries each has by these bitmaps. If there
// is such a file it returns an fs.ErrExist. After an error there is no file, unless it could
// not be removed.
//
// settled is called once all bitmaps are written, before the header makes the file valid: when
// it returns, the log must have these deletions durably. pace is called with the bytes written
// since the last call, at most 128 KiB, and may wait. Both may be nil; an error of either ends
// the work.
func Write(fs vfs.FS, dir string, number, store uint64, tables []*sstable.Table, pace func(written int) error, settled func() error) (alive []uint32, err error) {
	name := Name(dir, number)
	file, err := fs.Create(name)
	if err != nil {
		return nil, err
	}
	w := writer{file: file, pace: pace, settled: settled, slice: outSlice, sync: syncBytes}
	alive, err = w.write(header{store: store, number: number}, tables)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = fs.SyncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("write deletion bitmaps: %w", errors.Join(err, fs.Remove(name)))
	}
	return alive, nil
}

type writer struct {
	file    vfs.File
	pace    func(written int) error
	settled func() error
	slice   int   // the most bytes of a write
	sync    int64 // bytes between two syncs
	off     int64
	synced  int64
}

// write writes the file. Header and table come last, when all lengths are known.
func (w *writer) write(h header, tables []*sstable.Table) (alive []uint32, err error) {
	head := int64(headerSize + len(tables)*rowSize)
	w.off, w.synced = head, head
	table := make([]byte, 0, len(tables)*rowSize)
	var b []byte
	for _, r := range tables {
		var n int
		b, n = r.AppendBits(b[:0])
		alive = append(alive, uint32(n))
		table = appendRow(table, row{table: r.Number(), identity: r.Identity(), entries: r.Len(), length: uint32(len(b)), checksum: crc32.Checksum(b, castagnoli)})
		if err := w.append(b); err != nil {
			return nil, err
		}
	}
	h.length, h.tables, h.table = uint64(w.off), uint32(len(tables)), crc32.Checksum(table, castagnoli)
	if _, reason := decodeTable(table, w.off); reason != "" {
		return nil, errors.New(reason)
	}
	if w.settled != nil {
		if err := w.settled(); err != nil {
			return nil, err
		}
	}
	w.off = 0
	return alive, w.append(append(h.encode(), table...))
}

func (w *writer) append(b []byte) error {
	for len(b) > 0 {
		n := min(w.slice, len(b))
		if _, err := w.file.WriteAt(b[:n], w.off); err != nil {
			return err
		}
		b = b[n:]
		if w.off += int64(n); w.off-w.synced >= w.sync {
			w.synced = w.off
			if err := w.file.Sync(); err != nil {
				return err
			}
		}
		if w.pace == nil {
			continue
		}
		if err := w.pace(n); err != nil {
			return err
		}
	}
	return nil
}
