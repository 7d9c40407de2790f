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
}

// Append writes the record.
func (l *Lease) Append(b []byte) []byte {
	kind := kindLocalLease
	if l.Remote {
		kind = kindRemoteLease
	}
	b = l.From.append(binary.AppendUvarint(append(b, kind), uint64(l.ID)))
	b = binary.AppendUvarint(binary.AppendVarint(b, l.Deadline), uint64(l.Attempt))
	if l.Remote {
		b = append(b, l.Nonce[:]...)
	}
	return b
}

func (l *Lease) read(in *codec.Reader, kind byte) {
	*l = Lease{ID: readID(in), From: readSpot(in), Deadline: in.Varint(), Attempt: in.Uint32(), Remote: kind == kindRemoteLease}
	if l.Remote {
		copy(l.Nonce[:], in.Take(uint64(len(l.Nonce))))
	}
	if l.Attempt == 0 {
		in.Fail()
	}
}
