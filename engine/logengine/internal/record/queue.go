package record

import (
	"encoding/binary"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Name gives a queue its number, which no other ever gets, or takes it away, and with it the
// queue's settings and pause: then nothing of the queue is left.
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

// Configure says what the settings of a queue are, all of them.
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

// Purge says that all messages of a queue that wait are gone whose ids are at most UpTo, and
// those of the other states in Also. What was leased then is named in But: it is not touched,
// whatever it is when the log is replayed.
type Purge struct {
	Queue uint32
	Also  engine.PurgeAlso
	UpTo  engine.ID
	But   []engine.ID // ascending; shares nothing with what it was read from
}

const purgeAll = engine.PurgeDead | engine.PurgeFinished

// Append writes the record.
func (p *Purge) Append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindPurge), uint64(p.Queue))
	b = binary.AppendUvarint(append(b, byte(p.Also)), uint64(p.UpTo))
	b = binary.AppendUvarint(b, uint64(len(p.But)))
	last := engine.ID(0)
	for _, id := range p.But {
		b = binary.AppendUvarint(b, uint64(id-last))
		last = id
	}
	return b
}

func (p *Purge) read(in *codec.Reader) {
	*p = Purge{Queue: readQueue(in), Also: engine.PurgeAlso(in.Byte()), UpTo: engine.ID(in.Uvarint())}
	if p.Also&^purgeAll != 0 {
		in.Fail()
	}
	last := engine.ID(0)
	if n := in.Count(1); n > 0 {
		p.But = make([]engine.ID, n)
		for i := range p.But {
			step := engine.ID(in.Uvarint())
			if step == 0 || last+step < last {
				in.Fail()
			}
			last += step
			p.But[i] = last
		}
	}
}

// Spares reports whether the purge leaves a message alone because of its id.
func (p *Purge) Spares(id engine.ID) bool {
	if id > p.UpTo {
		return true
	}
	_, found := slices.BinarySearch(p.But, id)
	return found
}
