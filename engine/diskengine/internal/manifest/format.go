package manifest

import (
	"bytes"
	"encoding/binary"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	magic   = "tarrymfs"
	version = 1

	begunAt   = 24
	headSize  = 32 // magic, version, checksum, length, begun, zeros
	fixedSize = 8 + 16 + 8 + 8 + 8 + 8 + 4 + 4
	tableSize = 8 + 8 + 8 + 4 + 4 + 1 + 7
	maxSize   = headSize + fixedSize + MaxTables*tableSize
)

var le = binary.LittleEndian

// encode encodes a state that has been checked.
func (s *State) encode() []byte {
	size := headSize + fixedSize + len(s.Tables)*tableSize
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
		b = le.AppendUint64(b, r.Deletions)
		b = le.AppendUint64(b, r.Bytes)
		b = le.AppendUint32(b, r.Entries)
		b = le.AppendUint32(b, r.Alive)
		b = append(b, r.Area, 0, 0, 0, 0, 0, 0, 0)
	}
	vfs.SealHeader(b, magic, version, 0)
	return b
}

// decode decodes a file. If reason is not empty it says what is wrong, at offset off.
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
	n := int(le.Uint32(in[60:]))
	if in = in[fixedSize:]; n > MaxTables || len(in) != n*tableSize {
		return State{}, headSize + 60, "the sstables do not fill the file", nil
	}
	if n > 0 {
		s.Tables = make([]Table, n)
	}
	for i := range s.Tables {
		r := in[i*tableSize:]
		s.Tables[i] = Table{
			Number: le.Uint64(r), Deletions: le.Uint64(r[8:]), Bytes: le.Uint64(r[16:]),
			Entries: le.Uint32(r[24:]), Alive: le.Uint32(r[28:]), Area: r[32],
		}
	}
	if err := s.check(); err != nil {
		return State{}, headSize, err.Error(), nil
	}
	if !bytes.Equal(s.encode(), b) {
		return State{}, headSize, "bytes that must be zero are not", nil
	}
	return s, 0, "", nil
}
