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
