package sstable

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	magic   = "tarryrun"
	version = 4

	// HeaderSize is how long the header of a file is.
	HeaderSize = 64

	blockHead  = 16   // the head of a block, before its payload
	indexBlock = 4096 // a full block of an index, with its head; an index begins at a multiple of it

	blockWidth = 28 // of a row in the table of blocks
	queueWidth = 28 // of a row in the table of queues
	firstWidth = 8  // of a row in the table of the first items of index blocks

	tableBytes = 64 << 10 // the most payload of a block of a table
)

// Kinds of blocks. Those of a kind are together, in this order.
const (
	kindData = 1 + iota
	kindKeys
	kindIDs
	kindFilter
	kindBlocks
	kindKeyFirsts
	kindIDFirsts
	kindQueues
	kindFooter

	sections = kindQueues
)

const (
	footerPayload = 32 + sections*16
	footerSize    = blockHead + footerPayload
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
	be         = binary.BigEndian
)

// header is the start of a file. The checksums of all blocks start from its checksum.
type header struct {
	store, number, salt uint64
	crc                 uint32
}

func (h *header) encode() []byte {
	b := make([]byte, HeaderSize)
	le.PutUint64(b[16:], h.store)
	le.PutUint64(b[24:], h.number)
	le.PutUint64(b[32:], h.salt)
	h.crc = vfs.SealHeader(b, magic, version, 0)
	return b
}

// Identify returns which sstable of which store a file is, from its first bytes; ok is false
// if they are not of an sstable.
func Identify(b []byte) (store, number uint64, ok bool) {
	h, reason, err := decodeHeader(b)
	return h.store, h.number, reason == "" && err == nil
}

// decodeHeader decodes a header. If reason is not empty it says why it is none.
func decodeHeader(b []byte) (h header, reason string, err error) {
	b = b[:min(len(b), HeaderSize)]
	if _, reason, err = vfs.CheckHeader(b, magic, version, 0); reason != "" || err != nil {
		return h, reason, err
	}
	if len(b) < HeaderSize {
		return h, "the file ends", nil
	}
	return header{store: le.Uint64(b[16:]), number: le.Uint64(b[24:]), salt: le.Uint64(b[32:]), crc: le.Uint32(b[12:])}, "", nil
}

// sum is the checksum of a block at off. The first part is the head without its checksum.
func sum(seed uint32, off int64, parts ...[]byte) uint32 {
	var b [8]byte
	le.PutUint64(b[:], uint64(off))
	sum := crc32.Update(seed, castagnoli, b[:])
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// putHead writes the head of a block without the checksum.
func putHead(b []byte, kind, coding byte, count, length int) {
	clear(b[:blockHead])
	le.PutUint32(b[4:], uint32(length))
	b[8], b[9] = kind, coding
	le.PutUint32(b[12:], uint32(count))
}

// decodeBlock checks a block with its head and returns its payload, as it is coded.
func decodeBlock(seed uint32, off int64, kind byte, b []byte) (payload []byte, coding byte, count int, reason string) {
	switch {
	case len(b) < blockHead:
		return nil, 0, 0, "no room for a block"
	case sum(seed, off, b[4:]) != le.Uint32(b):
		return nil, 0, 0, "the checksum of a block does not match"
	case uint64(le.Uint32(b[4:])) != uint64(len(b)-blockHead), b[8] != kind:
		return nil, 0, 0, "another block than expected"
	case b[9] != plain && (b[9] != packed || kind != kindData):
		return nil, 0, 0, fmt.Sprintf("a block is coded in a way (%d) that this release does not know", b[9])
	}
	return b[blockHead:], b[9], int(le.Uint32(b[12:])), ""
}

// extent is where blocks of a kind are.
type extent struct{ off, end int64 }

// footer is the payload of the last block of a file.
type footer struct {
	entries, keys uint64
	minID, maxID  uint64
	parts         [sections]extent
}

func (f *footer) part(kind byte) *extent { return &f.parts[kind-1] }

func (f *footer) encode() []byte {
	b := make([]byte, 0, footerPayload)
	b = le.AppendUint64(b, f.entries)
	b = le.AppendUint64(b, f.keys)
	b = le.AppendUint64(b, f.minID)
	b = le.AppendUint64(b, f.maxID)
	for _, p := range f.parts {
		b = le.AppendUint64(b, uint64(p.off))
		b = le.AppendUint64(b, uint64(p.end))
	}
	return b
}

// decodeFooter decodes the footer of a file that is size bytes long.
func decodeFooter(b []byte, size int64) (f footer, reason string) {
	if len(b) != footerPayload {
		return f, "no footer"
	}
	f.entries, f.keys = le.Uint64(b), le.Uint64(b[8:])
	f.minID, f.maxID = le.Uint64(b[16:]), le.Uint64(b[24:])
	if f.entries > MaxEntries || f.keys > f.entries {
		return f, "a footer with numbers that cannot be"
	}
	at := int64(HeaderSize)
	for i := range f.parts {
		p := &f.parts[i]
		p.off, p.end = int64(le.Uint64(b[32+16*i:])), int64(le.Uint64(b[40+16*i:]))
		if p.off < at || p.end < p.off || p.end > size-footerSize {
			return f, "a footer with places that cannot be"
		}
		at = p.end
	}
	if f.minID > f.maxID {
		return f, "a footer with ids that cannot be"
	}
	keys, ids := f.layout(kindKeys), f.layout(kindIDs)
	if p := f.part(kindKeys); p.end-p.off != keys.indexLen(f.keys) {
		return f, "an index of keys of the wrong length"
	}
	if p := f.part(kindIDs); p.end-p.off != ids.indexLen(f.entries) {
		return f, "an index of ids of the wrong length"
	}
	return f, ""
}

const files = vfs.Numbered(".run")

// Name is the path of the sstable with a number.
func Name(dir string, number uint64) string { return files.Name(dir, number) }

// ParseName returns the number of an sstable from its name; ok is false for other files.
func ParseName(name string) (number uint64, ok bool) { return files.Parse(name) }

// Sweep removes the sstables in a directory that keep does not want: half-written ones that a
// crash left, and those that are no longer needed. None may be written meanwhile.
func Sweep(fs vfs.FS, dir string, keep func(number uint64) bool) error {
	return vfs.Sweep(fs, dir, func(name string) bool {
		number, ok := files.Parse(name)
		return ok && !keep(number)
	})
}
