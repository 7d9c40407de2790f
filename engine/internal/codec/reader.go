package codec

import (
	"encoding/binary"
	"errors"
	"time"
)

// ErrMalformed says that an encoded value is malformed.
var ErrMalformed = errors.New("corrupt entry: malformed value")

// Reader decodes a value. The first malformed part sets Err, and everything read from then on
// is zero. Only the result of Take is part of B.
type Reader struct {
	B   []byte // the rest
	Err error
}

// Fail records that the value is malformed.
func (r *Reader) Fail() {
	r.B, r.Err = nil, ErrMalformed
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.B) == 0 {
		r.Fail()
		return 0
	}
	c := r.B[0]
	r.B = r.B[1:]
	return c
}

// Uvarint reads an unsigned number in the form of encoding/binary.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.B)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Varint reads a signed number in the form of encoding/binary.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.B)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Uint32 reads a Uvarint below 2^32.
func (r *Reader) Uint32() uint32 {
	v := r.Uvarint()
	if v > 1<<32-1 {
		r.Fail()
		return 0
	}
	return uint32(v)
}

// Uint reads an unsigned number of n bytes, big-endian, n at most 8.
func (r *Reader) Uint(n uint64) (u uint64) {
	for _, c := range r.Take(n) {
		u = u<<8 | uint64(c)
	}
	return u
}

// Duration reads nanoseconds as a Uvarint. They must not be negative.
func (r *Reader) Duration() time.Duration { return r.span(r.Uvarint()) }

func (r *Reader) span(ns uint64) time.Duration {
	if ns > 1<<63-1 {
		r.Fail()
		return 0
	}
	return time.Duration(ns)
}

// Take returns the next n bytes without copying them.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.Fail()
		return nil
	}
	b := r.B[:n:n]
	r.B = r.B[n:]
	return b
}

// String reads a Uvarint length and as many bytes.
func (r *Reader) String() string { return string(r.Take(r.Uvarint())) }

// Count reads a Uvarint: the number of parts that follow, of at least size bytes each.
func (r *Reader) Count(size uint64) int {
	n := r.Uvarint()
	if n > uint64(len(r.B))/size {
		r.Fail()
		return 0
	}
	return int(n)
}

// End returns the error of the reads. Bytes left over are an error too.
func (r *Reader) End() error {
	if r.Err == nil && len(r.B) != 0 {
		r.Fail()
	}
	return r.Err
}

// AppendString writes a string for Reader.String.
func AppendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
