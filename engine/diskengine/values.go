package diskengine

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// keyRef is the value of a key: enough to answer a conflict or to cancel without
// reading the message.
type keyRef struct {
	id      engine.ID
	due     int64
	apart   bool // the body has its own entry
	expires bool // the message may be past its expiry: its record tells
}

const (
	keyApart byte = 1 << iota
	keyExpires
)

func (k keyRef) append(b []byte) []byte {
	var flags byte
	if k.apart {
		flags |= keyApart
	}
	if k.expires {
		flags |= keyExpires
	}
	return appendTime(appendID(append(b, flags), k.id), k.due)
}

func parseKeyRef(v []byte) (keyRef, error) {
	in := codec.Reader{B: v}
	flags := in.Byte()
	k := keyRef{apart: flags&keyApart != 0, expires: flags&keyExpires != 0}
	k.id = engine.ID(in.Uint(8))
	k.due = int64(in.Uint(8) ^ 1<<63)
	if flags >= keyExpires<<1 {
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
type counts struct{ waiting, leased, dead int64 }

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
