package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// segment is an open file of the log.
type segment struct {
	name   string
	number uint64
	file   vfs.File
	size   int64 // of the file

	header
	durable bool  // the header is durable
	unread  error // the disk's error, if it could not read the header

	// The writer's, once the segment is begun.
	off    int64 // where the next frame goes
	filled int64 // up to where the file was written, in this use or an earlier one
}

// end is a position beyond all that the segment can have.
func (s *segment) end() Pos { return s.base + Pos(s.size) }

// window reads a segment piece by piece.
type window struct {
	seg  *segment
	most Pos    // no frame of the segment has a higher position
	b    []byte // the bytes that were read
	off  int64  // where they are in the file

	unread error // the disk's error, if it could not read some bytes; those count as zeros
}

// reset turns to another segment. Old bytes in the file may look like heads of frames, each
// with a checksum over a mebibyte. most rules nearly all of them out without reading that
// much.
func (w *window) reset(s *segment, most Pos) { w.seg, w.most, w.b, w.unread = s, most, w.b[:0], nil }

const (
	windowSize = 256 << 10
	mostUnread = 4 // unreadable pages of a window: a write cut off leaves no more, a failing disk does
)

// bytes returns n bytes from off on, or as many as there are. They are valid until the next
// call.
func (w *window) bytes(off int64, n int) ([]byte, error) {
	if len(w.b) > 0 && off >= w.off && off+int64(n) <= w.off+int64(len(w.b)) {
		return w.b[off-w.off:][:n], nil
	}
	size := max(n, windowSize)
	if cap(w.b) < size {
		w.b = make([]byte, size)
	}
	k, u, err := vfs.ReadAround(w.seg.file, w.b[:size], off)
	if u.Err != nil {
		w.unread = fmt.Errorf("offset %d of the log's segment: %w", u.At, u.Err)
	}
	if u.Pages > mostUnread {
		k, err = 0, w.unread
	}
	w.b, w.off = w.b[:k], off
	if err != nil && !errors.Is(err, io.EOF) {
		w.b = w.b[:0]
		return nil, err
	}
	return w.b[:min(n, k)], nil
}

// frame reads the frame at off, which is valid until the next call. If reason is not empty it
// says why there is none.
func (w *window) frame(seed uint32, off int64) (f frame, reason string, err error) {
	b, err := w.bytes(off, frameSize)
	if err != nil {
		return f, "", err
	}
	if len(b) < frameSize {
		return f, "the file ends", nil
	}
	f, n, ok := decodeFrameHead(b)
	if !ok || f.pos > w.most {
		return f, "no head of a frame", nil
	}
	if b, err = w.bytes(off, int(padded(n))); err != nil {
		return f, "", err
	}
	switch {
	case len(b) < int(padded(n)):
		return f, "the file ends within a frame", nil
	case !sound(seed, b):
		return f, "the checksum of a frame does not match", nil
	}
	f.piece = b[frameSize:][:n]
	return f, "", nil
}

// proof looks from off on for a frame that says that the log was synced beyond a position.
func (w *window) proof(seed uint32, off int64, beyond Pos) (at int64, found bool, err error) {
	for off = (off + align - 1) / align * align; ; off += align {
		b, err := w.bytes(off, frameSize)
		if err != nil || len(b) < frameSize {
			return 0, false, err
		}
		if n := w.zeros(off); n > frameSize {
			off += int64(n-frameSize) - align // there is no head in zeros
			continue
		}
		f, _, ok := decodeFrameHead(b) // most places fail here
		if f.synced <= beyond || !ok {
			continue
		}
		if _, reason, err := w.frame(seed, off); err != nil || reason == "" {
			return off, err == nil, err
		}
	}
}

// zeros is how many of the bytes read from off on are zeros, in whole pages.
func (w *window) zeros(off int64) (n int) {
	const page = 4 << 10
	for b := w.b[off-w.off:]; len(b) >= page && bytes.Equal(b[:page], zeros[:page]); b = b[page:] {
		n += page
	}
	return n
}
