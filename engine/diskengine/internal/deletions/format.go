package deletions

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	magic   = "tarrymrk"
	version = 1

	headerSize = 64 // the header of a file
	rowSize    = 16 // a row of the table after it, one for each sstable

	suffix = ".marks"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// Name is the path of the file with a number.
func Name(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, suffix))
}

// ParseName returns the number of a file from its name without the directory; ok is false for
// other files.
func ParseName(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, err == nil && name == Name("", number)
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
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint64(b[16:], h.store)
	le.PutUint64(b[24:], h.number)
	le.PutUint64(b[32:], h.length)
	le.PutUint32(b[40:], h.tables)
	le.PutUint32(b[44:], h.table)
	le.PutUint32(b[12:], headerSum(b))
	return b
}

func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:headerSize])
}

// decodeHeader decodes a header. If reason is not empty it says what is wrong, at offset off.
func decodeHeader(b []byte) (h header, off int64, reason string, newer bool) {
	switch {
	case len(b) < headerSize || string(b[:8]) != magic:
		return h, 0, "no file of deletion bitmaps", false
	case headerSum(b) != le.Uint32(b[12:]):
		return h, 12, "the checksum of the header does not match", false
	}
	if v := le.Uint32(b[8:]); v != version {
		return h, 8, "the version is none that there was", v > version
	}
	h = header{
		store: le.Uint64(b[16:]), number: le.Uint64(b[24:]), length: le.Uint64(b[32:]),
		tables: le.Uint32(b[40:]), table: le.Uint32(b[44:]),
	}
	if !bytes.Equal(h.encode(), b[:headerSize]) {
		return h, 48, "what is to be zeros is not", false
	}
	return h, 0, "", false
}

// row is a row of the table: an sstable, and where in the file its deletion bitmap is.
type row struct {
	table    uint64
	checksum uint32 // of its deletion bitmap
	length   uint32
	off      int64 // not in the file: the sum of the lengths before
}

func appendRow(b []byte, r row) []byte {
	b = le.AppendUint64(b, r.table)
	b = le.AppendUint32(b, r.length)
	return le.AppendUint32(b, r.checksum)
}

// decodeTable decodes the table of a file that is size bytes long. If reason is not empty it
// says what is wrong.
func decodeTable(b []byte, size int64) (rows []row, reason string) {
	at := headerSize + int64(len(b))
	seen := make(map[uint64]bool, len(b)/rowSize)
	for ; len(b) > 0; b = b[rowSize:] {
		r := row{table: le.Uint64(b), length: le.Uint32(b[8:]), checksum: le.Uint32(b[12:]), off: at}
		if seen[r.table] {
			return nil, fmt.Sprintf("sstable %d stands there twice", r.table)
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
