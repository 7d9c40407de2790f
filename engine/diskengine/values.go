package diskengine

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// keyRef is the value of a key: enough to answer a conflict or to cancel without
// reading the message.
type keyRef struct {
	id        engine.ID // who holds the key; 0: nobody
	due       int64
	apart     bool    // the body has its own entry
	expires   bool    // the message may be past its expiry: its record tells
	remembers bool    // the key is to be remembered: the record tells for how long
	memory    *memory // of who held the key last, which nobody holds then
}

const (
	keyApart byte = 1 << iota
	keyExpires
	keyRemembers
	keyMemory
)

func (k keyRef) append(b []byte) []byte {
	if m := k.memory; m != nil {
		b = appendTime(appendID(append(b, keyMemory), m.id), m.due)
		return appendTime(appendTime(append(b, byte(m.ending)), m.ended), m.forgotten)
	}
	var flags byte
	if k.apart {
		flags |= keyApart
	}
	if k.expires {
		flags |= keyExpires
	}
	if k.remembers {
		flags |= keyRemembers
	}
	return appendTime(appendID(append(b, flags), k.id), k.due)
}

func parseKeyRef(v []byte) (keyRef, error) {
	in := codec.Reader{B: v}
	flags := in.Byte()
	k := keyRef{apart: flags&keyApart != 0, expires: flags&keyExpires != 0, remembers: flags&keyRemembers != 0}
	k.id = engine.ID(in.Uint(8))
	k.due = int64(in.Uint(8) ^ 1<<63)
	if flags == keyMemory {
		m := memory{id: k.id, due: k.due, ending: engine.Ending(in.Byte())}
		m.ended, m.forgotten = int64(in.Uint(8)^1<<63), int64(in.Uint(8)^1<<63)
		if m.ending < engine.Acked || m.ending > engine.Expired {
			in.Fail()
		}
		return keyRef{memory: &m}, in.End()
	}
	if flags >= keyMemory {
		in.Fail()
	}
	return k, in.End()
}

const leaseRemote byte = 1

// append writes the value of a lease.
func (l *lease) append(b []byte) []byte {
	var flags byte
	if l.remote {
		flags |= leaseRemote
	}
	b = appendTime(append(b, flags), l.deadline)
	b = append(b, l.token[:]...)
	return binary.AppendUvarint(b, uint64(l.attempt))
}

func parseLease(id engine.ID, v []byte) (*lease, error) {
	in := codec.Reader{B: v}
	flags := in.Byte()
	l := &lease{id: id, remote: flags&leaseRemote != 0}
	if flags > leaseRemote {
		in.Fail()
	}
	l.deadline = int64(in.Uint(8) ^ 1<<63)
	copy(l.token[:], in.Take(uint64(len(l.token))))
	l.attempt = in.Uint32()
	return l, in.End()
}

// counts is how many messages of a queue stand where.
type counts struct {
	waiting, leased, dead int64
	finished              int64 // memories; written apart
}

func (c counts) live() int64 { return c.waiting + c.leased }

func (c counts) append(b []byte) []byte {
	b = binary.AppendVarint(b, c.waiting)
	b = binary.AppendVarint(b, c.leased)
	return binary.AppendVarint(b, c.dead)
}

func parseCounts(v []byte) (counts, error) {
	in := codec.Reader{B: v}
	c := counts{waiting: in.Varint(), leased: in.Varint(), dead: in.Varint()}
	return c, in.End()
}

func appendFinished(b []byte, n, first int64) []byte {
	return appendTime(binary.AppendVarint(b, n), first)
}

func parseFinished(v []byte) (n, first int64, err error) {
	in := codec.Reader{B: v}
	n, first = in.Varint(), int64(in.Uint(8)^1<<63)
	return n, first, in.End()
}

func parsePriority(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, codec.ErrMalformed
	}
	return binary.BigEndian.Uint32(v), nil
}

// parsePosition reads a mark.
func parsePosition(v []byte) (position, error) {
	if len(v) != 16 {
		return position{}, codec.ErrMalformed
	}
	return position{at: parseTime(v), id: engine.ID(binary.BigEndian.Uint64(v[8:]))}, nil
}

// parseTimeValue reads the end of a pause.
func parseTimeValue(v []byte) (int64, error) {
	if len(v) != 8 {
		return 0, codec.ErrMalformed
	}
	return parseTime(v), nil
}
