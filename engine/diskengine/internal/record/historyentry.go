package record

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// HistoryEntry is the value of a finished message that is listed. The entry is ordered by when
// the message ended.
type HistoryEntry struct {
	Due, Created int64
	Ending       engine.Ending
	Attempt      uint32
	Started      int64  // when the lease began that was acked; 0: not known
	Worker       string // of that lease, or the canceller
	Failures     []byte // encoded by package codec; empty: none
}

// Bits in the byte of the ending, above the ending itself: what follows.
const (
	entryLeased   byte = 1 << 6 // Started and Worker
	entryFailures byte = 1 << 7
)

// Append writes the value.
func (h *HistoryEntry) Append(b []byte) []byte {
	b = binary.AppendVarint(binary.AppendVarint(b, h.Due), h.Created-h.Due)
	how := byte(h.Ending)
	if h.Started != 0 || h.Worker != "" {
		how |= entryLeased
	}
	if len(h.Failures) > 0 {
		how |= entryFailures
	}
	b = binary.AppendUvarint(append(b, how), uint64(h.Attempt))
	if how&entryLeased != 0 {
		b = codec.AppendString(binary.AppendVarint(b, h.Started-h.Due), h.Worker)
	}
	if how&entryFailures != 0 {
		b = appendBytes(b, h.Failures)
	}
	return b
}

func (h *HistoryEntry) read(in *codec.Reader) {
	*h = HistoryEntry{Due: in.Varint()}
	h.Created = h.Due + in.Varint()
	how := in.Byte()
	h.Ending, h.Attempt = engine.Ending(how&^(entryLeased|entryFailures)), in.Uint32()
	if how&entryLeased != 0 {
		h.Started, h.Worker = h.Due+in.Varint(), in.String()
	}
	if how&entryFailures != 0 {
		h.Failures = in.TakeFailures(in.Uvarint())
	}
	if h.Ending < engine.Acked || h.Ending > engine.Expired {
		in.Fail()
	}
}

// ParseHistoryEntry reads what Append wrote. The failures are part of b.
func ParseHistoryEntry(b []byte) (h HistoryEntry, err error) {
	in := codec.Reader{B: b}
	h.read(&in)
	if err := in.End(); err != nil {
		return HistoryEntry{}, err
	}
	return h, nil
}
