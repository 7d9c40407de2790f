package diskengine

import (
	"encoding/binary"
	"errors"
)

var errValue = errors.New("corrupt entry: malformed value")

// reader takes a value apart. The first thing that does not fit sets err, and
// everything read from then on is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	r.b, r.err = nil, errValue
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	if v > 1<<32-1 {
		r.fail()
		return 0
	}
	return uint32(v)
}

func (r *reader) uint64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// duration reads nanoseconds that must not be negative.
func (r *reader) duration() int64 {
	v := r.uvarint()
	if v > 1<<63-1 {
		r.fail()
		return 0
	}
	return int64(v)
}

// take returns the next n bytes, not copied.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) bytes() []byte { return r.take(r.uvarint()) }

func (r *reader) string() string { return string(r.bytes()) }

// count reads how many things of at least size bytes follow.
func (r *reader) count(size uint64) int {
	n := r.uvarint()
	if n > uint64(len(r.b))/size {
		r.fail()
		return 0
	}
	return int(n)
}

// end returns what went wrong; bytes left over are wrong too.
func (r *reader) end() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail()
	}
	return r.err
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
