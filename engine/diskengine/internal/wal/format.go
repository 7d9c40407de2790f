package wal

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Pos is a place in the log: the number of bytes of entries, with their heads, before it.
type Pos uint64

const (
	magic   = "tarrylog"
	version = 3

	headerSize = 4096    // the header of a segment; frames follow it
	storeAt    = 48      // where in a header the id of the store is
	frameSize  = 32      // the head of a frame, before its piece of the stream
	maxPiece   = 1 << 20 // the most bytes of the stream in one frame
	align      = 8       // frames begin at multiples of it

	maxEntryHead = 1 + binary.MaxVarintLen32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seed is the value that the checksums of a store start from.
func seed(id uint64) uint32 {
	return crc32.Checksum(binary.LittleEndian.AppendUint64(nil, id), castagnoli)
}

// header is the header of a segment. It is written when the segment is begun.
type header struct {
	number uint64
	base   Pos    // where the stream goes on; all before is synced
	salt   uint64 // random
	prev   uint32 // checksum of the frame that has the byte before base; 0: there is none
	store  uint64 // the store's id, in case nothing else tells it; 0: not known
	crc    uint32 // of the header
}

// encode sets the checksum and returns the bytes.
func (h *header) encode(seed uint32) []byte {
	b := make([]byte, headerSize)
	binary.LittleEndian.PutUint64(b[16:], h.number)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.base))
	binary.LittleEndian.PutUint64(b[32:], h.salt)
	binary.LittleEndian.PutUint32(b[40:], h.prev)
	binary.LittleEndian.PutUint64(b[storeAt:], h.store)
	h.crc = vfs.SealHeader(b, magic, version, seed)
	return b
}

// decodeHeader decodes b, of headerSize bytes. ok is false if b is no header. A header of
// another version is vfs.ErrVersion.
func decodeHeader(seed uint32, b []byte) (h header, ok bool, err error) {
	if _, reason, err := vfs.CheckHeader(b, magic, version, seed); reason != "" || err != nil {
		return header{}, false, err
	}
	return header{
		number: binary.LittleEndian.Uint64(b[16:]),
		base:   Pos(binary.LittleEndian.Uint64(b[24:])),
		salt:   binary.LittleEndian.Uint64(b[32:]),
		prev:   binary.LittleEndian.Uint32(b[40:]),
		store:  binary.LittleEndian.Uint64(b[storeAt:]),
		crc:    binary.LittleEndian.Uint32(b[12:]),
	}, true, nil
}

// frame is a piece of the stream.
type frame struct {
	pos    Pos    // where the piece begins
	synced Pos    // up to where the log was synced when the frame was written; at most pos
	prev   uint32 // checksum of the frame before, or of the header of the segment
	first  uint32 // where in the piece the first entry begins; its length if none does
	crc    uint32
	piece  []byte
}

func (f *frame) end() Pos { return f.pos + Pos(len(f.piece)) }

// padded is how many bytes a frame with a piece of n bytes takes up.
func padded(n int) int64 { return int64(frameSize+n+align-1) / align * align }

// encode writes the head of a frame to b and sets the checksum. Its piece of n bytes must be
// in b already, with zeros up to the padded length.
func (f *frame) encode(seed uint32, b []byte, n int) {
	binary.LittleEndian.PutUint32(b[4:], uint32(n))
	binary.LittleEndian.PutUint64(b[8:], uint64(f.pos))
	binary.LittleEndian.PutUint64(b[16:], uint64(f.synced))
	binary.LittleEndian.PutUint32(b[24:], f.prev)
	binary.LittleEndian.PutUint32(b[28:], f.first)
	f.crc = crc32.Update(seed, castagnoli, b[4:])
	binary.LittleEndian.PutUint32(b, f.crc)
}

// decodeFrameHead decodes the head of a frame and the length of its piece, and reports whether
// they can be right. It does not check the checksum.
func decodeFrameHead(b []byte) (f frame, n int, ok bool) {
	f = frame{
		crc:    binary.LittleEndian.Uint32(b),
		pos:    Pos(binary.LittleEndian.Uint64(b[8:])),
		synced: Pos(binary.LittleEndian.Uint64(b[16:])),
		prev:   binary.LittleEndian.Uint32(b[24:]),
		first:  binary.LittleEndian.Uint32(b[28:]),
	}
	size := binary.LittleEndian.Uint32(b[4:])
	ok = size <= maxPiece && f.first <= size && f.synced <= f.pos && uint64(f.pos) <= 1<<63
	return f, int(size), ok
}

// sound reports whether b, a frame with its padding, has the checksum it names.
func sound(seed uint32, b []byte) bool {
	return crc32.Update(seed, castagnoli, b[4:]) == binary.LittleEndian.Uint32(b)
}

// appendEntryHead appends what comes before the bytes of an entry.
func appendEntryHead(b []byte, kind byte, n int) []byte {
	return binary.AppendUvarint(append(b, kind), uint64(n))
}

// entryHead decodes the head of an entry. size is its length; 0: b has only a part of it;
// negative: it is no head.
func entryHead(b []byte) (kind byte, n, size int) {
	if len(b) == 0 {
		return 0, 0, 0
	}
	v, k := binary.Uvarint(b[1:min(len(b), maxEntryHead)])
	if k < 0 || k == 0 && len(b) >= maxEntryHead || v > mostEntry {
		return 0, 0, -1
	}
	if k == 0 {
		return 0, 0, 0
	}
	return b[0], int(v), 1 + k
}

// nextEntry returns where in b, a part of the stream, the first entry begins at or after at.
// An entry begins at i.
func nextEntry(b []byte, i, at int) int {
	for i < at {
		_, n, size := entryHead(b[i:])
		i += size + n
	}
	return i
}

// segmentFiles are the segments.
const segmentFiles = vfs.Numbered(".log")

func segmentName(dir string, number uint64) string { return segmentFiles.Name(dir, number) }
