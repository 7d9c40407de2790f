package backup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"time"
)

// The names in the directory of a backup, beside those of numbers.
const (
	Name         = "BACKUP"
	newName      = "BACKUP.new"
	lockName     = "LOCK"
	sstablesName = "sstables"
)

const (
	magic    = "tarrybak"
	version  = 2
	headSize = 64
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// head says which number counts.
type head struct {
	store  uint64 // 0: not known
	number uint64
	taken  int64  // Unix milliseconds
	end    uint64 // where the log ends
	bytes  uint64 // of all files
	files  uint64
}

func (h *head) encode() []byte {
	b := make([]byte, headSize)
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint64(b[16:], h.store)
	le.PutUint64(b[24:], h.number)
	le.PutUint64(b[32:], uint64(h.taken))
	le.PutUint64(b[40:], h.end)
	le.PutUint64(b[48:], h.bytes)
	le.PutUint64(b[56:], h.files)
	le.PutUint32(b[12:], sum(b))
	return b
}

func sum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:])
}

// decode decodes a head. If reason is not empty it says what is wrong, at offset off.
func decode(b []byte) (h head, off int64, reason string, err error) {
	switch {
	case len(b) < headSize || !bytes.Equal(b[:8], []byte(magic)):
		return h, 0, "this is not the head of a backup", nil
	case sum(b) != le.Uint32(b[12:]):
		return h, 12, "the checksum does not match", nil
	}
	if v := le.Uint32(b[8:]); v != version {
		return h, 8, "", fmt.Errorf("%w (its format is %d, this one reads %d)", ErrVersion, v, version)
	}
	if len(b) != headSize {
		return h, headSize, "the file is too long", nil
	}
	return head{
		store: le.Uint64(b[16:]), number: le.Uint64(b[24:]), taken: int64(le.Uint64(b[32:])),
		end: le.Uint64(b[40:]), bytes: le.Uint64(b[48:]), files: le.Uint64(b[56:]),
	}, 0, "", nil
}

// Result describes a backup that was made or restored.
type Result struct {
	Taken  time.Time // the instant at which it shows the store
	Files  int       // how many files it has
	Bytes  int64     // how many bytes they have
	Copied int64     // how many of those bytes were written; the others are shared
}

func (h *head) result(copied int64) Result {
	return Result{Taken: time.UnixMilli(h.taken).UTC(), Files: int(h.files), Bytes: int64(h.bytes), Copied: copied}
}

func numberName(n uint64) string { return fmt.Sprintf("%016x", n) }

// parseNumber returns a number from the name of its directory.
func parseNumber(name string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(name, 16, 64)
	return n, err == nil && name == numberName(n)
}

func (p *place) numbered(n uint64) string { return filepath.Join(p.dir, numberName(n)) }

func (p *place) sstables() string { return filepath.Join(p.dir, sstablesName) }
