package beanstalk

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
)

const (
	maxLine    = 224     // bytes of a line with its CRLF
	smallInput = 1 << 10 // the buffer of a connection that sends little
	bigInput   = 66 << 10
)

// input holds what a client has sent and the server has not carried out yet. Its buffer is small
// unless there is much to read, so that thousands of connections cost little.
type input struct {
	small [smallInput]byte
	buf   []byte // small, or one with room in memory
	r, w  int    // buf[r:w] is there
	full  bool   // the last read filled the buffer: there may be much more
	bad   bool   // within a line that is too long

	memory *memory
	ctx    context.Context // of calls of the store: one that it has ended may still read the buffer
}

func (in *input) init(ctx context.Context, m *memory) {
	in.buf, in.ctx, in.memory = in.small[:], ctx, m
}

// memory bounds the buffers of all connections.
type memory struct {
	used atomic.Int64
	most int64
	pool sync.Pool // of *[bigInput]byte
}

// take returns a buffer of at least n bytes; nil: there is no room.
func (m *memory) take(n int) []byte {
	n = max(n, bigInput)
	if !m.hold(n) {
		return nil
	}
	if n == bigInput {
		if b, ok := m.pool.Get().(*[bigInput]byte); ok {
			return b[:]
		}
	}
	return make([]byte, n)
}

// give returns a buffer that take returned. again: it may be used again.
func (m *memory) give(b []byte, again bool) {
	m.release(len(b))
	if again && len(b) == bigInput {
		m.pool.Put((*[bigInput]byte)(b))
	}
}

// hold takes n bytes of the memory, and reports whether there was room.
func (m *memory) hold(n int) bool {
	if m.used.Add(int64(n)) > m.most {
		m.release(n)
		return false
	}
	return true
}

// release gives n bytes of the memory back.
func (m *memory) release(n int) { m.used.Add(-int64(n)) }

// found says what next has found.
type found uint8

const (
	part    found = iota // no whole line yet
	whole                // a line
	tooLong              // the end of a line that was too long
)

// next takes a line, without its CRLF, from the input. As in beanstalkd, the first CR of a line
// must be followed by LF, and what is too long is dropped in pieces of 224 bytes.
func (in *input) next() ([]byte, found) {
	for {
		window := in.buf[in.r:min(in.w, in.r+maxLine)]
		if i := bytes.IndexByte(window, '\r'); i >= 0 && i+1 < len(window) && window[i+1] == '\n' {
			in.r += i + 2
			if in.bad {
				in.bad = false
				return nil, tooLong
			}
			return window[:i], whole
		}
		if len(window) < maxLine {
			return nil, part
		}
		if !in.bad && fromBrowser(window) {
			return window, whole // the connection ends
		}
		in.r += maxLine
		in.bad = true
	}
}

// buffered returns how many bytes are there.
func (in *input) buffered() int { return in.w - in.r }

// take takes n bytes from the input; they must be there.
func (in *input) take(n int) []byte {
	b := in.buf[in.r : in.r+n]
	in.r += n
	return b
}

// space returns room to read into, in a buffer that grows towards need bytes as they come; nil:
// there is no memory. What take and next returned is overwritten.
func (in *input) space(need int) []byte {
	n, to := in.buffered(), in.buf
	switch {
	case !in.isSmall() && !in.full && need <= smallInput && n < smallInput:
		to = in.small[:]
	case in.full && in.isSmall() || n == len(in.buf):
		if big := in.memory.take(min(need, 2*len(in.buf))); big != nil {
			to = big
		} else if n == len(in.buf) {
			return nil
		}
	}
	copy(to, in.buf[in.r:in.w])
	if len(to) != len(in.buf) {
		in.drop()
	}
	in.buf, in.r, in.w = to, 0, n
	return to[n:]
}

// isSmall reports whether the buffer is the small one.
func (in *input) isSmall() bool { return len(in.buf) <= smallInput }

// drop gives a big buffer back.
func (in *input) drop() {
	if !in.isSmall() {
		in.memory.give(in.buf, in.ctx.Err() == nil)
	}
	in.buf = in.small[:]
}

// add notes that n bytes were read into the space.
func (in *input) add(n int) {
	in.w += n
	in.full = in.w == len(in.buf) && in.w <= bigInput
}
