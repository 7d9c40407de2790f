package backup

import (
	"encoding/binary"
	"path/filepath"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
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

var le = binary.LittleEndian

// numbers are the directories of numbers.
const numbers = vfs.Numbered("")

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
	le.PutUint64(b[16:], h.store)
	le.PutUint64(b[24:], h.number)
	le.PutUint64(b[32:], uint64(h.taken))
	le.PutUint64(b[40:], h.end)
	le.PutUint64(b[48:], h.bytes)
	le.PutUint64(b[56:], h.files)
	vfs.SealHeader(b, magic, version, 0)
	return b
}

// decode decodes a head. If reason is not empty it says what is wrong, at offset off.
func decode(b []byte) (h head, off int64, reason string, err error) {
	switch off, reason, err = vfs.CheckHeader(b, magic, version, 0); {
	case reason != "" || err != nil:
		return h, off, reason, err
	case len(b) != headSize:
		return h, headSize, "the file has another length", nil
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

func (p *place) numbered(n uint64) string { return numbers.Name(p.dir, n) }

func (p *place) sstables() string { return filepath.Join(p.dir, sstablesName) }
