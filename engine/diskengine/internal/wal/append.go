package wal

import (
	"context"
	"fmt"
	"sync"
)

// buffer is a part of the stream that waits to be written. It begins with an entry. Its first
// frameSize bytes are for the head of a frame.
type buffer struct {
	b    []byte
	back func() // gives b back to its owner; nil: b is the log's
}

// bufferSize is how large a buffer is, unless an entry needs a larger one.
const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, frameSize, frameSize+bufferSize+align)} }}

func newBuffer(atLeast int) *buffer {
	if atLeast <= bufferSize {
		return buffers.Get().(*buffer)
	}
	return &buffer{b: make([]byte, frameSize, frameSize+atLeast+align)}
}

func (b *buffer) fits(n int) bool { return len(b.b)+n+align <= cap(b.b) }

// give gives b back if it is not the log's.
func (b *buffer) give() {
	if back := b.back; back != nil {
		b.b, b.back = nil, nil
		back()
	}
}

func (b *buffer) free() {
	if b.b == nil {
		return
	}
	if b.b = b.b[:frameSize]; cap(b.b) == frameSize+bufferSize+align {
		buffers.Put(b)
	}
}

// Append appends an entry made of the parts, and returns its end, for Wait. It waits for
// nothing, keeps none of the parts, and fails only if the log is closed or stopped, or the
// entry too long. Entries are in the order of the calls.
func (l *Log) Append(kind byte, parts ...[]byte) (Pos, error) {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	l.mu.Lock()
	b, err := l.room(kind, n)
	if err != nil {
		l.mu.Unlock()
		return 0, err
	}
	for _, p := range parts {
		b.b = append(b.b, p...)
	}
	end, wake := l.end, l.idle
	l.idle = false
	l.mu.Unlock()
	if wake {
		signal(l.wake)
	}
	return end, nil
}

// takes returns why an entry of n bytes cannot be appended. mu is held.
func (l *Log) takes(n int) error {
	switch {
	case l.err != nil:
		return l.err
	case l.closed:
		return ErrClosed
	case n > l.cfg.MaxEntry:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, n, l.cfg.MaxEntry)
	}
	return nil
}

// room appends and counts the head of an entry of n bytes, and returns the buffer, which has
// room for the bytes. mu is held.
func (l *Log) room(kind byte, n int) (*buffer, error) {
	if err := l.takes(n); err != nil {
		return nil, err
	}
	if l.cur != nil && !l.cur.fits(maxEntryHead+n) {
		l.full, l.cur = append(l.full, l.cur), nil
	}
	if l.cur == nil {
		l.cur = newBuffer(maxEntryHead + n)
	}
	b, was := l.cur, len(l.cur.b)
	b.b = appendEntryHead(b.b, kind, n)
	size := len(b.b) - was + n
	l.end += Pos(size)
	l.pending += size
	return b, nil
}

// Admit is called before an entry is appended that may be refused, without any lock. It waits
// while more than Config.MaxPending bytes wait for the disk, or no segment is ahead. It
// returns ErrFull while there is no space for further segments. The disk may still be full
// when a caller that was admitted appends.
func (l *Log) Admit(ctx context.Context) error {
	l.refill()
	for {
		l.mu.Lock()
		f, err := l.busy, l.err
		switch {
		case err != nil:
		case l.closed:
			err = ErrClosed
		default:
			err = l.noRoom()
		}
		if f == nil {
			f = l.next
		}
		wait, made := l.pending > l.cfg.MaxPending, l.made
		if len(l.spares) > 0 || l.spareErr != nil {
			made = nil
		}
		l.mu.Unlock()
		switch {
		case err != nil, !wait && made == nil:
			return err
		case !wait:
			f = nil
		}
		select {
		case <-f.over():
		case <-made:
		case <-l.failed:
		case <-ctx.Done():
			return context.Cause(ctx) // nothing was appended
		}
	}
}

// Full is the error with which Admit refuses for want of space; nil: it does not.
func (l *Log) Full() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noRoom()
}

// noRoom returns why there is no space; nil: there is. mu is held.
func (l *Log) noRoom() error {
	switch {
	case l.err != nil: // Err tells that
		return nil
	case l.writeErr != nil:
		return fmt.Errorf("%w: %w", ErrFull, l.writeErr)
	case l.noSpace:
		return fmt.Errorf("%w: %w", ErrFull, l.spareErr)
	}
	return nil
}
