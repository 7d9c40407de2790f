package diskengine

import (
	"encoding/binary"

	"github.com/tarryhq/tarry/engine"
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
	in := reader{b: v}
	flags := in.byte()
	k := keyRef{apart: flags&keyApart != 0, expires: flags&keyExpires != 0}
	k.id = engine.ID(in.uint64())
	k.due = int64(in.uint64() ^ 1<<63)
	if flags >= keyExpires<<1 {
		in.fail()
	}
	return k, in.end()
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
	in := reader{b: v}
	flags := in.byte()
	l := &lease{id: id, remote: flags&leaseRemote != 0}
	if flags > leaseRemote {
		in.fail()
	}
	l.deadline = int64(in.uint64() ^ 1<<63)
	copy(l.token[:], in.take(uint64(len(l.token))))
	l.attempt = in.uint32()
	return l, in.end()
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
	in := reader{b: v}
	c := counts{waiting: in.varint(), leased: in.varint(), dead: in.varint()}
	return c, in.end()
}

func parsePriority(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, errValue
	}
	return binary.BigEndian.Uint32(v), nil
}

// parsePosition reads a mark.
func parsePosition(v []byte) (position, error) {
	if len(v) != 16 {
		return position{}, errValue
	}
	return position{at: parseTime(v), id: engine.ID(binary.BigEndian.Uint64(v[8:]))}, nil
}

// parseTimeValue reads the end of a pause.
func parseTimeValue(v []byte) (int64, error) {
	if len(v) != 8 {
		return 0, errValue
	}
	return parseTime(v), nil
}
