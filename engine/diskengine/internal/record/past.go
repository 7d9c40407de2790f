package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Past is the value of a finished message that is listed. When it ended is the time by which
// the entry is ordered.
type Past struct {
	Due, Created int64
	Ending       engine.Ending
	Attempt      uint32
	Started      int64  // when the lease began that was acked; 0: not known
	Worker       string // of that lease, or the canceller
	Failures     []byte // encoded by package codec; empty: none
}

// Bits in the byte of the ending, above the ending itself: what follows.
const (
	pastLeased   byte = 1 << 6 // Started and Worker
	pastFailures byte = 1 << 7
)

// Append writes the value.
func (p *Past) Append(b []byte) []byte {
	b = binary.AppendVarint(binary.AppendVarint(b, p.Due), p.Created-p.Due)
	how := byte(p.Ending)
	if p.Started != 0 || p.Worker != "" {
		how |= pastLeased
	}
	if len(p.Failures) > 0 {
		how |= pastFailures
	}
	b = binary.AppendUvarint(append(b, how), uint64(p.Attempt))
	if how&pastLeased != 0 {
		b = codec.AppendString(binary.AppendVarint(b, p.Started-p.Due), p.Worker)
	}
	if how&pastFailures != 0 {
		b = appendBytes(b, p.Failures)
	}
	return b
}

func (p *Past) read(in *codec.Reader) {
	*p = Past{Due: in.Varint()}
	p.Created = p.Due + in.Varint()
	how := in.Byte()
	p.Ending, p.Attempt = engine.Ending(how&^(pastLeased|pastFailures)), in.Uint32()
	if how&pastLeased != 0 {
		p.Started, p.Worker = p.Due+in.Varint(), in.String()
	}
	if how&pastFailures != 0 {
		p.Failures = in.TakeFailures(in.Uvarint())
	}
	if p.Ending < engine.Acked || p.Ending > engine.Expired {
		in.Fail()
	}
}

// ParsePast reads what Append wrote. The failures are part of b.
func ParsePast(b []byte) (p Past, err error) {
	in := codec.Reader{B: b}
	p.read(&in)
	if err := in.End(); err != nil {
		return Past{}, err
	}
	return p, nil
}
