package wal

import (
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

// Copy copies the held part, up to where the log is synced now, to an empty directory. The
// copy is like a log that was closed, and durable when Copy returns. First Copy reads the part:
// a broken frame is a *vfs.DamageError. The log goes on meanwhile.
//
// pace is called with the bytes read or written since the last call, and may wait; its error
// ends the work.
func (h *Hold) Copy(fs vfs.FS, dir string, pace func(bytes int) error) (Copied, error) {
	l, end := h.log, h.log.Synced()
	segs := h.segments(end)
	read := 0
	r := (&chain{dir: l.dir, seed: l.seed, begun: segs}).reading(h.from, &l.cfg, func(e Entry) error {
		if read += len(e.Bytes); read < windowSize {
			return nil
		}
		n := read
		read = 0
		return pace(n)
	})
	r.durable, r.until = end, end
	found, err := r.all()
	if err != nil {
		return Copied{}, err
	}
	c := Copied{End: found.End, Files: len(segs)}
	for i, s := range segs {
		last, most := i+1 == len(segs), s.size
		if last {
			most = r.off
		}
		name := segmentName(dir, s.number)
		n, err := vfs.Copy(fs, s.name, name, most, pace)
		if err == nil && last {
			n += frameSize
			err = r.mark(fs, name)
		}
		if c.Bytes += n; err != nil {
			return Copied{}, err
		}
	}
	return c, fs.SyncDir(dir)
}

// mark writes to a copy of the last segment, after its last frame, an empty one, which says that
// all is synced.
func (r *reading) mark(fs vfs.FS, name string) (err error) {
	file, err := fs.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	f := frame{pos: r.pos, synced: r.pos, prev: r.prev}
	b := make([]byte, frameSize)
	f.encode(r.seed, b, 0)
	if _, err := file.WriteAt(b, r.off); err != nil {
		return err
	}
	return file.Sync()
}

// segments returns the segments from the hold's position up to the last one that begins before
// end. Those before the hold may be released and used again at any time.
func (h *Hold) segments(end Pos) []*segment {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	segs := slices.Clone(h.log.live)
	for len(segs) > 1 && segs[len(segs)-1].base >= end {
		segs = segs[:len(segs)-1]
	}
	for len(segs) > 1 && segs[1].base <= h.from {
		segs = segs[1:]
	}
	return segs
}
