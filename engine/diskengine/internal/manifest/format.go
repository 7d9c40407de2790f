package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const (
	magic   = "tarrymfs"
	version = 5

	tablesAt  = 68
	headSize  = 8 + 4 + 4 + 8 + 16 + 8 + 8 + 8 + 4 + 4 + 1 + 7 // without the sstables
	tableSize = 8 + 8 + 4 + 4 + 4 + 4 + 1 + 3
	sector    = 4 << 10 // each part of the file has sectors of its own: a bad one spoils only that
	maxSize   = 1 << 30
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// padded is how many bytes a part of the file takes.
func padded(n int) int { return (n + sector - 1) / sector * sector }

// size is the length of the file.
func (s *State) size() int {
	size := 2 * padded(headSize+len(s.Tables)*tableSize)
	for _, r := range s.Tables {
		size += padded(len(r.Deleted))
	}
	return size
}

// encode encodes a state that has been checked: its head twice, then the deletion bitmaps.
func (s *State) encode() []byte {
	b, head := make([]byte, s.size()), s.encodeHead()
	copy(b, head)
	at := padded(len(head))
	copy(b[at:], head)
	at *= 2
	for _, r := range s.Tables {
		copy(b[at:], r.Deleted)
		at += padded(len(r.Deleted))
	}
	return b
}

func (s *State) encodeHead() []byte {
	b := make([]byte, 16, headSize+len(s.Tables)*tableSize)
	b = append(le.AppendUint64(b, s.Store), s.Secret[:]...)
	b = le.AppendUint64(b, s.Replay)
	b = le.AppendUint64(b, s.NextID)
	b = le.AppendUint64(b, s.NextFile)
	b = le.AppendUint32(b, s.NextQueue)
	b = le.AppendUint32(b, uint32(len(s.Tables)))
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	if s.Begun {
		b[tablesAt+4] = 1
	}
	for _, r := range s.Tables {
		b = le.AppendUint64(b, r.Number)
		b = le.AppendUint64(b, r.Bytes)
		b = le.AppendUint32(b, r.Entries)
		b = le.AppendUint32(b, r.Alive)
		b = le.AppendUint32(b, uint32(len(r.Deleted)))
		b = le.AppendUint32(b, crc32.Checksum(r.Deleted, castagnoli))
		b = append(b, r.Area, 0, 0, 0)
	}
	vfs.SealHeader(b, magic, version, 0)
	return b
}

// decode decodes a file. If reason is not empty it says what is wrong, at offset off. Then s is
// what can be read of it, some deletion bitmaps missing, or the zero State if neither copy of
// the head can be read. Deletion bitmaps are part of b.
func decode(b []byte) (s State, off int64, reason string, err error) {
	head, off, reason, err := findHead(b)
	if head == nil {
		return State{}, off, reason, err
	}
	wrong := func(at int, what string) {
		if reason == "" {
			off, reason = int64(at), what
		}
	}
	s.decodeHead(head)
	at := 2 * padded(len(head))
	for i := range s.Tables {
		t, row, rest := &s.Tables[i], head[headSize+i*tableSize:], b[min(at, len(b)):]
		length := le.Uint32(row[24:])
		if uint64(length) > uint64(len(rest)) {
			wrong(len(b), "the deletion bitmaps do not fit into the file")
			break
		}
		if bitmap := rest[:length:length]; crc32.Checksum(bitmap, castagnoli) != le.Uint32(row[28:]) {
			wrong(at, fmt.Sprintf("the checksum of the deletion bitmap of sstable %d does not match", t.Number))
		} else if length > 0 {
			t.Deleted = bitmap
		}
		at += padded(int(length))
	}
	if reason != "" {
		return s, off, reason, nil
	}
	if err := s.check(); err != nil {
		return State{}, 0, err.Error(), nil
	}
	if !bytes.Equal(s.encode(), b) {
		return s, 0, "bytes that no release writes", nil
	}
	return s, 0, "", nil
}

// findHead returns the head or, if that is damaged, its copy. A reason says what is wrong with
// the head.
func findHead(b []byte) (head []byte, off int64, reason string, err error) {
	if _, _, err := vfs.CheckHeader(b, magic, version, 0); err != nil {
		return nil, 0, "", err // the checksum of earlier formats is of the whole file
	}
	for at := 0; at == 0 || at < len(b); at += sector {
		head, size := b[at:], headSize
		if len(head) > size {
			size += int(min(le.Uint32(head[tablesAt:]), MaxTables)) * tableSize
		}
		head = head[:min(size, len(head))]
		wrongAt, wrong, err := vfs.CheckHeader(head, magic, version, 0)
		if len(head) < size {
			wrong = "it is too short"
		}
		if at == 0 {
			if err != nil {
				return nil, 0, "", err
			}
			off, reason = wrongAt, wrong
		}
		if err == nil && wrong == "" {
			return head, off, reason, nil
		}
	}
	return nil, off, reason, nil
}

func (s *State) decodeHead(b []byte) {
	s.Store = le.Uint64(b[16:])
	copy(s.Secret[:], b[24:])
	s.Replay, s.NextID, s.NextFile = le.Uint64(b[40:]), le.Uint64(b[48:]), le.Uint64(b[56:])
	s.NextQueue = le.Uint32(b[64:])
	s.Begun = b[tablesAt+4] == 1
	for row := b[headSize:]; len(row) > 0; row = row[tableSize:] {
		s.Tables = append(s.Tables, Table{Number: le.Uint64(row), Bytes: le.Uint64(row[8:]), Entries: le.Uint32(row[16:]), Alive: le.Uint32(row[20:]), Area: row[32]})
	}
}
