package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Put is a whole message. It replaces whatever had the id before.
type Put struct {
	ID    engine.ID
	Queue uint32
	New   bool   // the id was never used before
	From  Spot   // where it was in an sstable, if that is known; not when New
	Key   []byte // empty: none
	State
	Content []byte // from Content.Append
	Body    []byte // follows Content if that was written without its body; nil: nothing, as in decoded records
}

// Append writes the record.
func (p *Put) Append(b []byte) []byte { return append(p.AppendHead(b), p.Body...) }

// AppendHead writes the record without Body.
func (p *Put) AppendHead(b []byte) []byte {
	if p.New {
		b = binary.AppendUvarint(append(b, kindPush), uint64(p.ID))
	} else {
		b = p.From.append(binary.AppendUvarint(append(b, kindPut), uint64(p.ID)))
	}
	b = appendBytes(binary.AppendUvarint(b, uint64(p.Queue)), p.Key)
	b = binary.AppendUvarint(p.State.Append(b), uint64(len(p.Content)+len(p.Body)))
	return append(b, p.Content...)
}

func (p *Put) read(in *codec.Reader, kind byte) {
	*p = Put{ID: readID(in), New: kind == kindPush}
	if !p.New {
		p.From = readSpot(in)
	}
	p.Queue = readQueue(in)
	p.Key = in.Take(in.Uvarint())
	p.State.Read(in)
	p.Content = in.Take(in.Uvarint())
}

// Content is the part of a message that stays until it is replaced.
type Content struct {
	Created int64
	engine.Policy
	engine.Content
}

// contentForm is the first byte of a content.
const contentForm = 0

// Append writes the content.
func (c *Content) Append(b []byte) []byte {
	h := Head{c.Created, c.Policy}
	return codec.AppendContent(h.Append(b), &c.Content)
}

// ParseContent reads what Append wrote. Only the body is part of b.
func ParseContent(b []byte) (c Content, err error) {
	in := codec.Reader{B: b}
	var h Head
	h.read(&in)
	c.Created, c.Policy = h.Created, h.Policy
	c.Content = in.SharedContent()
	if in.Err != nil {
		return Content{}, in.Err
	}
	return c, nil
}

// Move is the new state of a message; its content stays. The log must have a Put of it at or
// after the position from which it is replayed. If the message is not there, Move has no
// effect.
type Move struct {
	ID engine.ID
	State
}

// Append writes the record.
func (m *Move) Append(b []byte) []byte {
	return m.State.Append(binary.AppendUvarint(append(b, kindMove), uint64(m.ID)))
}

func (m *Move) read(in *codec.Reader) {
	m.ID = readID(in)
	m.State.Read(in)
}

// Gone says that a message is gone, or that a key is no longer remembered. If Listed it says
// that a finished message is no longer listed.
type Gone struct {
	ID     engine.ID
	From   Spot // where it was in an sstable, if that is known
	Listed bool
}

// Append writes the record.
func (g *Gone) Append(b []byte) []byte {
	kind := kindGone
	if g.Listed {
		kind = kindUnlist
	}
	return g.From.append(binary.AppendUvarint(append(b, kind), uint64(g.ID)))
}

func (g *Gone) read(in *codec.Reader, kind byte) {
	*g = Gone{ID: readID(in), From: readSpot(in), Listed: kind == kindUnlist}
}

// Finish says that the key of a message that is gone is remembered, under the id of that
// message. It follows the message's Gone.
type Finish struct {
	ID        engine.ID
	Queue     uint32
	Key       []byte
	Due       int64
	Ending    engine.Ending
	Ended     int64
	Forgotten int64 // when the key is free again
}

// Append writes the record.
func (f *Finish) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindFinish), uint64(f.ID))
	b = appendBytes(binary.AppendUvarint(b, uint64(f.Queue)), f.Key)
	b = append(binary.AppendVarint(b, f.Due), byte(f.Ending))
	b = binary.AppendVarint(b, f.Ended)
	return binary.AppendVarint(b, f.Forgotten-f.Ended)
}

func (f *Finish) read(in *codec.Reader) {
	*f = Finish{ID: readID(in), Queue: readQueue(in), Key: in.Take(in.Uvarint()), Due: in.Varint(), Ending: engine.Ending(in.Byte()), Ended: in.Varint()}
	f.Forgotten = f.Ended + in.Varint()
	if len(f.Key) == 0 || f.Ending < engine.Acked || f.Ending > engine.Expired {
		in.Fail()
	}
}

// List says that a message that is gone is listed as finished. It follows the message's Gone.
type List struct {
	ID    engine.ID
	Queue uint32
	Key   []byte // empty: none
	Ended int64
	Value []byte // from HistoryEntry.Append
}

// Append writes the record.
func (l *List) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindList), uint64(l.ID))
	b = appendBytes(binary.AppendUvarint(b, uint64(l.Queue)), l.Key)
	return append(binary.AppendVarint(b, l.Ended), l.Value...)
}

func (l *List) read(in *codec.Reader) {
	*l = List{ID: readID(in), Queue: readQueue(in), Key: in.Take(in.Uvarint()), Ended: in.Varint()}
	rest := in.B
	new(HistoryEntry).read(in)
	l.Value = rest[:len(rest)-len(in.B)]
}
