package sstable

import "math/bits"

// pieceWords is how many words of bits are packed together.
const pieceWords = 64 << 10 / 8

// AppendBits appends which entries are deleted, in pieces packed by zstd, and returns how many
// are alive by that. An entry that is deleted meanwhile may count or not.
func (l *Live) AppendBits(b []byte) (_ []byte, alive int) {
	alive = 64 * len(l.dead) // bits after the last entry are set
	var raw, piece []byte
	for from := 0; from < len(l.dead); from += pieceWords {
		raw = raw[:0]
		for i := from; i < min(len(l.dead), from+pieceWords); i++ {
			w := l.word(uint32(i))
			alive -= bits.OnesCount64(w)
			raw = le.AppendUint64(raw, w)
		}
		piece = packer.EncodeAll(raw, piece[:0])
		b = append(le.AppendUint32(b, uint32(len(piece))), piece...)
	}
	return b, alive
}

// RestoreBits deletes the entries that were deleted when AppendBits made b. If b is malformed
// it reports false and changes nothing.
func (l *Live) RestoreBits(b []byte) bool {
	raw := make([]byte, 0, 8*len(l.dead))
	piece := make([]byte, 0, 8*pieceWords) // apart: the unpacker's limit counts what stands before it
	for len(b) > 0 {
		if len(b) < 4 || uint64(len(b)-4) < uint64(le.Uint32(b)) {
			return false
		}
		var err error
		n := 4 + le.Uint32(b)
		if piece, err = unpacker.DecodeAll(b[4:n], piece[:0]); err != nil || len(piece) > cap(raw)-len(raw) {
			return false
		}
		raw = append(raw, piece...)
		b = b[n:]
	}
	if len(raw) != cap(raw) {
		return false
	}
	for i := range l.dead {
		l.kill(uint32(i), le.Uint64(raw[8*i:]))
	}
	return true
}
