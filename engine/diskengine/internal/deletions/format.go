package deletions

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	magic   = "tarrymrk"
	version = 2

	headerSize = 64 // the header of a file
	rowSize    = 24 // a row of the table after it, one for each sstable
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// ErrDamaged says that a file cannot be read. The error is a *vfs.DamageError.
var ErrDamaged = errors.New("a file of deletion bitmaps is damaged")

const files = vfs.Numbered(".marks")

// Name is the path of the file with a number.
func Name(dir string, number uint64) string { return files.Name(dir, number) }

// ParseName returns the number of a file from its name; ok is false for other files.
func ParseName(name string) (number uint64, ok bool) { return files.Parse(name) }

// Sweep removes the files of deletion bitmaps in a directory that keep does not want. None may
// be written meanwhile.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return files.Sweep(fs, dir, keep)
}

// header is the start of a file.
type header struct {
	store, number uint64
	length        uint64 // of the file
	tables        uint32
	table         uint32 // checksum of the table after the header
}

func (h *header) encode() []byte {
	b := make([]byte, headerSize)
	le.PutUint64(b[16:], h.store)
	le.PutUint64(b[24:], h.number)
	le.PutUint64(b[32:], h.length)
	le.PutUint32(b[40:], h.tables)
	le.PutUint32(b[44:], h.table)
	vfs.SealHeader(b, magic, version, 0)
	return b
}

// decodeHeader decodes a header. If reason is not empty it says what is wrong, at offset off.
func decodeHeader(b []byte) (h header, off int64, reason string, err error) {
	b = b[:min(len(b), headerSize)]
	if off, reason, err = vfs.CheckHeader(b, magic, version, 0); reason != "" || err != nil {
		return h, off, reason, err
	}
	if len(b) < headerSize {
		return h, int64(len(b)), "the file ends", nil
	}
	h = header{
		store: le.Uint64(b[16:]), number: le.Uint64(b[24:]), length: le.Uint64(b[32:]),
		tables: le.Uint32(b[40:]), table: le.Uint32(b[44:]),
	}
	if !bytes.Equal(h.encode(), b) {
		return h, 48, "bytes that must be zero are not", nil
	}
	return h, 0, "", nil
}

// row is a row of the table: an sstable, and where in the file its deletion bitmap is.
type row struct {
	table    uint64
	identity uint32 // of the sstable: another one may have its number in a store restored from a backup
	entries  uint32
	length   uint32 // of its deletion bitmap
	checksum uint32 // of its deletion bitmap
	off      int64  // not in the file: the sum of the lengths before
}

func appendRow(b []byte, r row) []byte {
	b = le.AppendUint64(b, r.table)
	b = le.AppendUint32(b, r.identity)
	b = le.AppendUint32(b, r.entries)
	b = le.AppendUint32(b, r.length)
	return le.AppendUint32(b, r.checksum)
}

// decodeTable decodes the table of a file that is size bytes long. If reason is not empty it
// says what is wrong.
func decodeTable(b []byte, size int64) (rows []row, reason string) {
	at := headerSize + int64(len(b))
	seen := make(map[uint64]bool, len(b)/rowSize)
	for ; len(b) > 0; b = b[rowSize:] {
		r := row{table: le.Uint64(b), identity: le.Uint32(b[8:]), entries: le.Uint32(b[12:]),
			length: le.Uint32(b[16:]), checksum: le.Uint32(b[20:]), off: at}
		if seen[r.table] {
			return nil, fmt.Sprintf("sstable %d is there twice", r.table)
		}
		seen[r.table] = true
		at += int64(r.length)
		rows = append(rows, r)
	}
	if at != size {
		return nil, "the deletion bitmaps do not fill the file"
	}
	return rows, ""
}
