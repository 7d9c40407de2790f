package record

import (
	"encoding/binary"
	"math"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Never is a time that does not come. All times are Unix milliseconds.
const Never = math.MaxInt64

// State is the part of a message that changes while its content stays.
type State struct {
	Due     int64
	Expires int64  // Never: it does not expire
	Attempt uint32 // how many leases count

	Dead bool
	Died int64 // when Dead

	// Lapsed says that Nonce is of the last lease, which has lapsed; its token still settles.
	Lapsed bool
	Nonce  codec.Nonce

	Failures []byte // encoded by package codec; empty: none
}

// At is the time by which a message is ordered: when it died, or else when it is due.
func (s *State) At() int64 {
	if s.Dead {
		return s.Died
	}
	return s.Due
}

const (
	stateExpires byte = 1 << iota
	stateAttempt
	stateDead
	stateLapsed
	stateFailures
	stateEnd
)

// Append writes the state. Zero fields, and an Expires of Never, are left out.
func (s *State) Append(b []byte) []byte {
	at := len(b)
	b = binary.AppendVarint(append(b, 0), s.Due)
	has := byte(0)
	if s.Expires != Never {
		has, b = has|stateExpires, binary.AppendVarint(b, s.Expires-s.Due)
	}
	if s.Attempt > 0 {
		has, b = has|stateAttempt, binary.AppendUvarint(b, uint64(s.Attempt))
	}
	if s.Dead {
		has, b = has|stateDead, binary.AppendVarint(b, s.Died)
	}
	if s.Lapsed {
		has, b = has|stateLapsed, append(b, s.Nonce[:]...)
	}
	if len(s.Failures) > 0 {
		has, b = has|stateFailures, appendBytes(b, s.Failures)
	}
	b[at] = has
	return b
}

// Read reads what Append wrote.
func (s *State) Read(in *codec.Reader) {
	has := in.Byte()
	if has >= stateEnd {
		in.Fail()
	}
	*s = State{Due: in.Varint(), Expires: Never}
	if has&stateExpires != 0 {
		if s.Expires = s.Due + in.Varint(); s.Expires == Never {
			in.Fail()
		}
	}
	if has&stateAttempt != 0 {
		if s.Attempt = in.Uint32(); s.Attempt == 0 {
			in.Fail()
		}
	}
	if s.Dead = has&stateDead != 0; s.Dead {
		s.Died = in.Varint()
	}
	if s.Lapsed = has&stateLapsed != 0; s.Lapsed {
		copy(s.Nonce[:], in.Take(uint64(len(s.Nonce))))
	}
	if has&stateFailures != 0 {
		s.Failures = in.TakeFailures(in.Uvarint())
	}
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

// readID reads an id, which is never 0.
func readID(in *codec.Reader) engine.ID {
	id := in.Uvarint()
	if id == 0 {
		in.Fail()
	}
	return engine.ID(id)
}

// readQueue reads the number of a queue, which is never 0.
func readQueue(in *codec.Reader) uint32 {
	n := in.Uint32()
	if n == 0 {
		in.Fail()
	}
	return n
}

// Spot is a position in an sstable. The zero Spot is nowhere.
type Spot struct {
	Table uint64 // its number
	At    uint32 // how many entries of the sstable are before it
}

func (s Spot) append(b []byte) []byte {
	b = binary.AppendUvarint(b, s.Table)
	if s.Table != 0 {
		b = binary.AppendUvarint(b, uint64(s.At))
	}
	return b
}

func readSpot(in *codec.Reader) (s Spot) {
	if s.Table = in.Uvarint(); s.Table != 0 {
		s.At = in.Uint32()
	}
	return s
}
