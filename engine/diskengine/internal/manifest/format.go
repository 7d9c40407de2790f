package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	magic   = "tarrymfs"
	version = 2

	begunAt   = 24
	headSize  = 32 // magic, version, checksum, length, begun, zeros
	fixedSize = 8 + 16 + 8 + 8 + 8 + 8 + 4 + 4
	tableSize = 8 + 8 + 4 + 4 + 4 + 1 + 3
	maxSize   = 1 << 30
)

var le = binary.LittleEndian

// encode encodes a state that has been checked.
func (s *State) encode() []byte {
	size := headSize + fixedSize + len(s.Tables)*tableSize
	for _, r := range s.Tables {
		size += len(r.Deleted)
	}
	b := make([]byte, 16, size)
	b = le.AppendUint64(b, uint64(size))
	b = append(b, make([]byte, headSize-len(b))...)
	if s.Begun {
		b[begunAt] = 1
	}
	b = append(le.AppendUint64(b, s.Store), s.Secret[:]...)
	b = le.AppendUint64(b, s.Replay)
	b = le.AppendUint64(b, s.NextID)
	b = le.AppendUint64(b, s.NextFile)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, s.NextQueue)
	b = le.AppendUint32(b, uint32(len(s.Tables)))
	for _, r := range s.Tables {
		b = le.AppendUint64(b, r.Number)
		b = le.AppendUint64(b, r.Bytes)
		b = le.AppendUint32(b, r.Entries)
		b = le.AppendUint32(b, r.Alive)
		b = le.AppendUint32(b, uint32(len(r.Deleted)))
		b = append(b, r.Area, 0, 0, 0)
	}
	for _, r := range s.Tables {
		b = append(b, r.Deleted...)
	}
	vfs.SealHeader(b, magic, version, 0)
	return b
}

// decode decodes a file. If reason is not empty it says what is wrong, at offset off. Deletion
// bitmaps are part of b.
func decode(b []byte) (s State, off int64, reason string, err error) {
	switch off, reason, err = vfs.CheckHeader(b, magic, version, 0); {
	case reason != "" || err != nil:
		return s, off, reason, err
	case len(b) < headSize+fixedSize:
		return s, headSize, "it is too short", nil
	case le.Uint64(b[16:]) != uint64(len(b)):
		return s, 16, "the file is not as long as it says", nil
	}
	s.Begun = b[begunAt] == 1
	in := b[headSize:]
	s.Store = le.Uint64(in)
	copy(s.Secret[:], in[8:])
	s.Replay, s.NextID, s.NextFile = le.Uint64(in[24:]), le.Uint64(in[32:]), le.Uint64(in[40:])
	s.NextQueue = le.Uint32(in[56:])
	n := uint64(le.Uint32(in[60:]))
	if in = in[fixedSize:]; n > MaxTables || uint64(len(in)) < n*tableSize {
		return State{}, headSize + 60, "the sstables do not fit into the file", nil
	}
	rows, bitmaps := in[:n*tableSize], in[n*tableSize:]
	for ; len(rows) > 0; rows = rows[tableSize:] {
		t := Table{Number: le.Uint64(rows), Bytes: le.Uint64(rows[8:]), Entries: le.Uint32(rows[16:]), Alive: le.Uint32(rows[20:]), Area: rows[28]}
		length := uint64(le.Uint32(rows[24:]))
		if length > uint64(len(bitmaps)) {
			return State{}, headSize + 60, "the deletion bitmaps do not fit into the file", nil
		}
		if length > 0 {
			t.Deleted, bitmaps = bitmaps[:length:length], bitmaps[length:]
		}
		s.Tables = append(s.Tables, t)
	}
	if err := s.check(); err != nil {
		return State{}, headSize, err.Error(), nil
	}
	if !bytes.Equal(s.encode(), b) {
		return State{}, headSize, "bytes that no release writes", nil
	}
	return s, 0, "", nil
}
