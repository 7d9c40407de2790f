package wal

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Hold keeps the log from a position on, even if it is released meanwhile.
type Hold struct {
	log  *Log
	from Pos
}

// Hold keeps the log from a position that has not been released yet.
func (l *Log) Hold(from Pos) *Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &Hold{l, from}
	l.holds = append(l.holds, h)
	return h
}

// Release ends the hold. It is idempotent.
func (h *Hold) Release() {
	l := h.log
	l.mu.Lock()
	l.holds = slices.DeleteFunc(l.holds, func(o *Hold) bool { return o == h })
	l.mu.Unlock()
	l.Release(0)
}

// Copied describes a copy of a log.
type Copied struct {
	End   Pos // where its last entry ends
	Files int
	Bytes int64
}

const copySync = 512 << 10 // bytes of a copy between two syncs, so that the last one is short for all users of the disk

// Copy copies the held part, up to where the log is synced now, to an empty directory. The
// copy is like a log that was closed, and durable when Copy returns. Copy checks frames; a
// broken one is a *vfs.DamageError. The log goes on meanwhile.
//
// pace is called with the bytes written since the last call, and may wait; its error ends the
// work. nil: it is not called.
func (h *Hold) Copy(fs vfs.FS, dir string, pace func(written int) error) (Copied, error) {
	c := copying{Hold: h, fs: fs, dir: dir, pace: pace, end: h.log.Synced()}
	segs := h.segments(c.end)
	valid := (&chain{begun: segs}).valid()
	for len(valid) > 1 && valid[1].base <= h.from {
		valid = valid[1:]
	}
	c.cut = cutter{from: h.from, most: h.log.cfg.MaxEntry, fn: func(Entry) error { return nil }}
	if len(valid) > 0 {
		segs = segs[slices.Index(segs, valid[0]):]
		c.cut.prev, c.cut.end, c.cut.whole = segs[0].prev, segs[0].base, segs[0].base == 0
	}
	for _, s := range segs {
		to := s.base // if the segment's part was dropped, only the header, so that no number is missing
		if len(valid) > 0 && valid[0] == s {
			if valid = valid[1:]; len(valid) > 0 {
				to = valid[0].base
			} else {
				to = c.end
			}
		}
		if err := c.segment(s, to, len(valid) == 0); err != nil {
			return Copied{}, err
		}
	}
	return Copied{c.cut.end, len(segs), c.bytes}, fs.SyncDir(dir)
}

// segments returns the segments up to the last one that begins before a position.
func (h *Hold) segments(end Pos) []*segment {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	segs := slices.Clone(h.log.live)
	for len(segs) > 1 && segs[len(segs)-1].base >= end {
		segs = segs[:len(segs)-1]
	}
	return segs
}

// copying is a copy in the making.
type copying struct {
	*Hold
	fs    vfs.FS
	dir   string
	pace  func(int) error
	end   Pos // where the copy ends, maybe within an entry
	cut   cutter
	bytes int64

	win      window
	out      vfs.File
	buf      []byte // bytes still to be written
	off      int64  // where they go
	unsynced int64  // bytes written since the last sync
}

// segment copies the frames of a segment up to a position. After the last frame of the last
// segment it writes an empty one, which says that all is synced.
func (c *copying) segment(s *segment, to Pos, last bool) (err error) {
	if c.out, err = c.fs.Create(segmentName(c.dir, s.number)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.out.Close()) }()
	head := s.header
	c.buf, c.off = append(c.buf[:0], head.encode(c.log.seed)...), 0
	c.win.reset(s, Unknown)
	prev, pos, off := s.crc, s.base, int64(headerSize)
	for pos < to {
		f, reason, err := c.win.frame(c.log.seed, off)
		if err != nil {
			return err
		}
		if reason == "" && (f.pos != pos || f.prev != prev) {
			reason = "the frame does not follow the one before it"
		}
		if reason != "" {
			return cmp.Or(c.win.unread, damage(s, off, pos, reason))
		}
		size := padded(len(f.piece))
		b, err := c.win.bytes(off, int(size))
		if err != nil {
			return err
		}
		if len(f.piece) > 0 {
			piece := f
			if !last && f.end() > to {
				piece.piece = f.piece[:to-f.pos]
				piece.first = min(f.first, uint32(len(piece.piece)))
			}
			var m misfit
			if err := c.cut.add(piece); errors.As(err, &m) {
				return damage(s, off, pos, m.Error())
			} else if err != nil {
				return err
			}
		}
		prev, pos, off = f.crc, f.end(), off+size
		if c.buf = append(c.buf, b...); len(c.buf) >= windowSize {
			if err := c.write(); err != nil {
				return err
			}
		}
	}
	if last {
		mark := frame{pos: pos, synced: pos, prev: prev}
		b := make([]byte, frameSize)
		mark.encode(c.log.seed, b, 0)
		c.buf = append(c.buf, b...)
	}
	if err := c.write(); err != nil {
		return err
	}
	return c.out.Sync()
}

func (c *copying) write() error {
	n := len(c.buf)
	if _, err := c.out.WriteAt(c.buf, c.off); err != nil {
		return err
	}
	c.off, c.bytes, c.buf = c.off+int64(n), c.bytes+int64(n), c.buf[:0]
	if c.unsynced += int64(n); c.unsynced >= copySync {
		c.unsynced = 0
		if err := c.out.Sync(); err != nil {
			return err
		}
	}
	if c.pace == nil {
		return nil
	}
	return c.pace(n)
}
