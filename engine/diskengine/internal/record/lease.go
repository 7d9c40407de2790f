package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Lease says that a message is leased. It replaces any earlier lease; a Put, Move or Gone of
// the message ends it. If the message is not there it has no effect.
type Lease struct {
	ID       engine.ID
	From     Spot // where the message is in an sstable, if that is known
	Deadline int64
	Attempt  uint32 // counts this lease; at least 1

	// Remote says that another process has the lease, so that it outlives this one.
	Remote bool
	Nonce  codec.Nonce // when Remote

	Lapsed bool   // it has lapsed, at Deadline, whatever the clock says
	Worker string // its name; "": none
}

const (
	leaseRemote byte = 1 << iota
	leaseLapsed
	leaseWorker
	leaseEnd
)

// Append writes the record.
func (l *Lease) Append(b []byte) []byte {
	b = l.From.append(binary.AppendUvarint(append(b, kindLease), uint64(l.ID)))
	b = binary.AppendUvarint(binary.AppendVarint(b, l.Deadline), uint64(l.Attempt))
	at, has := len(b), byte(0)
	b = append(b, 0)
	if l.Remote {
		has, b = has|leaseRemote, append(b, l.Nonce[:]...)
	}
	if l.Lapsed {
		has |= leaseLapsed
	}
	if l.Worker != "" {
		has, b = has|leaseWorker, codec.AppendString(b, l.Worker)
	}
	b[at] = has
	return b
}

func (l *Lease) read(in *codec.Reader) {
	*l = Lease{ID: readID(in), From: readSpot(in), Deadline: in.Varint(), Attempt: in.Uint32()}
	has := in.Byte()
	if l.Remote = has&leaseRemote != 0; l.Remote {
		copy(l.Nonce[:], in.Take(uint64(len(l.Nonce))))
	}
	l.Lapsed = has&leaseLapsed != 0
	if has&leaseWorker != 0 {
		l.Worker = in.String()
	}
	if l.Attempt == 0 || has >= leaseEnd {
		in.Fail()
	}
}
