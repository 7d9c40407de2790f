package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Outside of the log a message is stored as a value: in a memtable alone, in an sstable with
// its key before it.

// AppendValue writes the value of a live or dead message.
func AppendValue(b []byte, s *State, content []byte) []byte { return append(s.Append(b), content...) }

// ParseValue reads what AppendValue wrote. What it returns is part of b.
func ParseValue(b []byte) (s State, content []byte, err error) {
	in := codec.Reader{B: b}
	s.Read(&in)
	return s, in.B, in.Err
}

// Trace is the value of a remembered key. When it is forgotten is the time by which the entry
// is ordered.
type Trace struct {
	Due    int64
	Ending engine.Ending
	Ended  int64
}

// Append writes the value.
func (t *Trace) Append(b []byte) []byte {
	return binary.AppendVarint(append(binary.AppendVarint(b, t.Due), byte(t.Ending)), t.Ended)
}

// ParseTrace reads what Append wrote.
func ParseTrace(b []byte) (t Trace, err error) {
	in := codec.Reader{B: b}
	t = Trace{Due: in.Varint(), Ending: engine.Ending(in.Byte()), Ended: in.Varint()}
	if t.Ending < engine.Acked || t.Ending > engine.Expired {
		in.Fail()
	}
	if err := in.End(); err != nil {
		return Trace{}, err
	}
	return t, nil
}

// AppendKeyed writes a value with its key before it, as sstables have it.
func AppendKeyed(b, key, value []byte) []byte { return append(appendBytes(b, key), value...) }

// ParseKeyed reads what AppendKeyed wrote. What it returns is part of b.
func ParseKeyed(b []byte) (key, value []byte, err error) {
	in := codec.Reader{B: b}
	key = in.Take(in.Uvarint())
	return key, in.B, in.Err
}

// ParseStored reads the value of a live or dead message in an sstable. What it returns is part
// of b.
func ParseStored(b []byte) (key []byte, s State, content []byte, err error) {
	key, value, err := ParseKeyed(b)
	if err == nil {
		s, content, err = ParseValue(value)
	}
	return key, s, content, err
}

// Head is the beginning of a content: what is needed of a message without its headers and
// body.
type Head struct {
	Created int64
	engine.Policy
}

// Append writes the head.
func (h *Head) Append(b []byte) []byte {
	return codec.AppendPolicy(binary.AppendVarint(append(b, contentForm), h.Created), &h.Policy)
}

// ParseHead reads the head of a content. Nothing in it is part of b.
func ParseHead(b []byte) (h Head, err error) {
	in := codec.Reader{B: b}
	h.read(&in)
	return h, in.Err
}

// HeadOf returns the part of a content that is its head.
func HeadOf(b []byte) ([]byte, error) {
	in := codec.Reader{B: b}
	new(Head).read(&in)
	return b[:len(b)-len(in.B)], in.Err
}

func (h *Head) read(in *codec.Reader) {
	if in.Byte() != contentForm {
		in.Fail()
	}
	h.Created = in.Varint()
	h.Policy = in.Policy()
}
