package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Name gives a queue its number, which no other queue ever gets. Without a name it forgets the
// queue, with its settings and pause: nothing of the queue is left then.
type Name struct {
	Queue uint32
	Name  []byte // empty: the queue is forgotten
}

// Append writes the record.
func (n *Name) Append(b []byte) []byte {
	return appendBytes(binary.AppendUvarint(append(b, kindName), uint64(n.Queue)), n.Name)
}

func (n *Name) read(in *codec.Reader) {
	*n = Name{Queue: readQueue(in), Name: in.Take(in.Uvarint())}
}

// Configure has all settings of a queue.
type Configure struct {
	Queue    uint32
	Revision uint64
	Settings engine.Settings // shares nothing with what it was read from
}

// Append writes the record.
func (c *Configure) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindConfigure), uint64(c.Queue))
	return codec.AppendSettings(binary.AppendUvarint(b, c.Revision), &c.Settings)
}

func (c *Configure) read(in *codec.Reader) {
	*c = Configure{Queue: readQueue(in), Revision: in.Uvarint(), Settings: in.Settings()}
}

// Pause says until when a queue is paused.
type Pause struct {
	Queue uint32
	Until int64 // Never: for good; 0: it is not paused
}

// Append writes the record.
func (p *Pause) Append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(append(b, kindPause), uint64(p.Queue)), p.Until)
}

func (p *Pause) read(in *codec.Reader) { *p = Pause{Queue: readQueue(in), Until: in.Varint()} }

// Purge says that the pending messages of a queue whose ids are at most UpTo are gone, and so
// are those of the other states in Also. Messages that were leased then are not touched,
// whatever they are when the log is replayed: those whose leases end after At. The log has a
// Lease of each of them after the position from which it is replayed.
type Purge struct {
	Queue uint32
	Also  engine.PurgeAlso
	UpTo  engine.ID
	At    int64

	// Spares says that the ids in the Spare records before, back to the last one with First,
	// are not touched either.
	Spares bool
}

const (
	purgeAll         = engine.PurgeDead | engine.PurgeFinished
	purgeSpares byte = 4
)

// Append writes the record.
func (p *Purge) Append(b []byte) []byte {
	how := byte(p.Also)
	if p.Spares {
		how |= purgeSpares
	}
	b = append(binary.AppendUvarint(append(b, kindPurge), uint64(p.Queue)), how)
	return binary.AppendVarint(binary.AppendUvarint(b, uint64(p.UpTo)), p.At)
}

func (p *Purge) read(in *codec.Reader) {
	*p = Purge{Queue: readQueue(in)}
	how := in.Byte()
	p.Also, p.Spares = engine.PurgeAlso(how&^purgeSpares), how&purgeSpares != 0
	if p.UpTo, p.At = engine.ID(in.Uvarint()), in.Varint(); p.Also&^purgeAll != 0 {
		in.Fail()
	}
}

// Spare names ids that the next Purge of a queue does not touch: messages that were leased
// when the purge began and are no longer, dead ones redriven since, and keys remembered since.
type Spare struct {
	Queue uint32
	First bool // ids named before do not count
	IDs   []engine.ID
}

// Append writes the record.
func (s *Spare) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindSpare), uint64(s.Queue))
	n := uint64(len(s.IDs)) << 1
	if s.First {
		n |= 1
	}
	b = binary.AppendUvarint(b, n)
	for _, id := range s.IDs {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

func (s *Spare) read(in *codec.Reader) {
	*s = Spare{Queue: readQueue(in), IDs: s.IDs[:0]}
	n := in.Uvarint()
	s.First = n&1 != 0
	for n >>= 1; n > 0 && in.Err == nil; n-- {
		s.IDs = append(s.IDs, readID(in))
	}
}
