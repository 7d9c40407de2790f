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
	durable bool  // the header is
	unread  error // of the disk, which could not read the header

	// The writer's, once it is begun.
	off    int64 // where the next frame goes
	filled int64 // up to where the file was written, in this life or an earlier one
}

// end is a position that the segment cannot reach.
func (s *segment) end() Pos { return s.base + Pos(s.size) }

// window reads a segment piece by piece.
type window struct {
	seg  *segment
	most Pos    // no frame of the segment has a higher position
	b    []byte // what was read
	off  int64  // from where

	unread error // of the disk, which could not read what then counts as zeros
}

// reset turns to another segment. Entries of earlier lives of the file may look like heads of frames, each with
// a checksum over a mebibyte. Hardly any of them has a position up to most.
func (w *window) reset(s *segment, most Pos) { w.seg, w.most, w.b, w.unread = s, most, w.b[:0], nil }

const (
	windowSize = 256 << 10
	mostUnread = 4 // pages of a window: a write that was cut off leaves no more, a disk that fails does
)

// bytes returns n bytes from off on, or as many as there are. They hold until the next call.
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

// frame reads the frame at off, which holds until the next call. Without an error and with a
// reason there is none.
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

// proof looks from off on for a frame which says that the log was synced beyond a place.
func (w *window) proof(seed uint32, off int64, beyond Pos) (at int64, found bool, err error) {
	for off = (off + align - 1) / align * align; ; off += align {
		b, err := w.bytes(off, frameSize)
		if err != nil || len(b) < frameSize {
			return 0, false, err
		}
		if n := w.zeros(off); n > frameSize {
			off += int64(n-frameSize) - align // no head that is in zeros says anything
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

// zeros is how many bytes from off on are zeros, of what was read, in whole pages.
func (w *window) zeros(off int64) (n int) {
	const page = 4 << 10
	for b := w.b[off-w.off:]; len(b) >= page && bytes.Equal(b[:page], zeros[:page]); b = b[page:] {
		n += page
	}
	return n
}
