package wal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Torn is what follows the end of a log that was not closed: bytes that a crash cut off, or
// older ones. It is dropped.
type Torn struct {
	File   string
	Offset int64
	Reason string
}

// Found is what opening a log found.
type Found struct {
	Entries  int64 // how many from the given position on
	End      Pos   // where the log ends
	Segments int   // how many were read
	Torn     *Torn // nil: the log ends clean
}

// Read gives fn the entries of a log that is not open, as Open does, and changes nothing. The
// entries need not be durable.
func Read(fs vfs.FS, dir string, cfg *Config, from Pos, fn func(Entry) error) (Found, error) {
	d := cfg.withDefaults()
	c, err := scan(fs, dir, d.ID)
	if err != nil {
		return Found{}, fmt.Errorf("read the log: %w", err)
	}
	found, err := c.reading(from, &d, fn).all()
	if err = errors.Join(err, c.close()); err != nil {
		return found, fmt.Errorf("read the log: %w", err)
	}
	return found, nil
}

// reading is one pass through a chain.
type reading struct {
	*chain
	from     Pos
	durable  Pos // all before is durable
	until    Pos // where it ends at the latest
	wasBegun bool
	cut      cutter
	win      window
	found    Found

	lastFull uint32 // checksum of the last frame that is not empty
	torn     *Torn
	unread   error // the disk's error, if the log ends where the disk cannot read

	// Of the last segment: where it ends, and from where it may never have been synced. pos and
	// prev are of a frame that would follow.
	off, unsure int64
	pos         Pos
	prev        uint32
}

// reading returns a pass that gives fn the entries from a position on, which is 0 or was
// durable.
func (c *chain) reading(from Pos, cfg *Config, fn func(Entry) error) *reading {
	r := &reading{chain: c, from: from, durable: from, until: Unknown, wasBegun: cfg.Begun}
	r.cut = cutter{from: from, most: cfg.MaxEntry, fn: func(e Entry) error { r.found.Entries++; return fn(e) }}
	return r
}

// all makes the pass.
func (r *reading) all() (Found, error) {
	if len(r.begun) == 0 {
		return r.found, r.nothing()
	}
	segs := r.valid()
	for len(segs) > 1 && segs[1].base <= r.from {
		segs = segs[1:] // all of the first one is before from
	}
	if segs[0].base > r.from {
		return r.found, r.missing(segs[0])
	}
	r.lastFull, r.cut.prev, r.cut.end, r.cut.whole = segs[0].prev, segs[0].prev, segs[0].base, segs[0].base == 0
	for i, s := range segs {
		var next *segment
		if i+1 < len(segs) {
			next = segs[i+1]
		}
		if err := r.segment(s, next); err != nil {
			return r.found, err
		}
	}
	r.found.Segments, r.found.End, r.found.Torn = len(segs), r.cut.end, r.torn
	return r.found, nil
}

func damage(s *segment, off int64, pos Pos, reason string) error {
	return damageOf(s.name, off, pos, reason)
}

// damageOf is the error of damage in a file; the log is sound before pos.
func damageOf(file string, off int64, pos Pos, reason string) error {
	return &vfs.DamageError{What: ErrDamaged, File: file, Offset: off, Reason: fmt.Sprintf("%s (position %d of the log)", reason, pos)}
}

// missing says which segment before the first one is missing or has no sound header.
func (r *reading) missing(first *segment) error {
	reason := fmt.Sprintf("the segment is missing, and with it the log from position %d on", r.from)
	name := segmentName(r.dir, first.number-1)
	if i := slices.IndexFunc(r.others, func(s *segment) bool { return s.name == name }); i >= 0 {
		if err := r.others[i].unread; err != nil {
			return err
		}
		reason = "the header of the segment is broken, and segments behind it say that it was durable"
	}
	return damageOf(name, 0, r.from, reason)
}

// nothing handles a log without a begun segment: none ever was, or none is left.
func (r *reading) nothing() error {
	if r.from > 0 || r.wasBegun {
		return damageOf(r.dir, 0, r.from, "no segment has a sound header")
	}
	most := Pos(0)
	for _, s := range r.others {
		most += Pos(s.size)
		if err := r.unheaded(s, 0, most); err != nil {
			return err
		}
	}
	return nil
}

// unheaded returns an error if a segment without a sound header was begun after pos, the end
// of the log. No frame in it has a position beyond most.
func (r *reading) unheaded(s *segment, pos, most Pos) error {
	r.win.reset(s, most)
	off, found, err := r.win.proof(r.seed, headerSize, pos)
	if err == nil && found {
		return cmp.Or(s.unread, damage(s, 0, pos, fmt.Sprintf("the header of the segment is broken, and the frame at offset %d says that it was durable", off)))
	}
	r.unread = cmp.Or(r.unread, s.unread)
	return err
}

// segment reads a segment. next is the one after it; nil: it is the last.
func (r *reading) segment(s, next *segment) error {
	if s.prev != r.lastFull {
		return damage(s, 0, s.base, "the segment does not follow the one before it")
	}
	r.win.reset(s, s.end())
	prev, pos, off := s.crc, s.base, int64(headerSize)
	synced, unsure, since, marked := s.base, int64(0), int64(0), false
	to := r.until
	if next != nil {
		to = next.base
	}
	for pos < to {
		f, reason, err := r.win.frame(r.seed, off)
		if err != nil {
			return err
		}
		if reason == "" && (f.pos != pos || f.prev != prev) {
			reason = "the frame does not follow the one before it"
		}
		if reason != "" {
			unread := r.win.unread
			if unread != nil {
				reason += "; " + unread.Error()
			}
			if err := r.broken(s, next, off, pos, reason); err != nil {
				return cmp.Or(unread, err)
			}
			r.unread = cmp.Or(unread, r.unread)
			if !marked {
				r.torn = &Torn{File: s.name, Offset: off, Reason: reason}
			}
			break
		}
		size := padded(len(f.piece))
		if marked = len(f.piece) == 0; !marked {
			if next != nil && f.end() > next.base {
				f.piece = f.piece[:next.base-f.pos] // what follows was dropped when next was begun
				f.first = min(f.first, uint32(len(f.piece)))
			}
			if err := r.add(s, off, f); err != nil {
				return err
			}
			r.lastFull = f.crc
		}
		if f.synced > synced { // frames written during that sync still name the sync before
			synced, unsure, since = f.synced, since, off
		}
		prev, pos, off = f.crc, f.end(), off+size
	}
	r.off, r.unsure, r.pos, r.prev = off, unsure, pos, prev
	return nil
}

func (r *reading) add(s *segment, off int64, f frame) error {
	err := r.cut.add(f)
	var m misfit
	if errors.As(err, &m) {
		return damage(s, off, f.pos, m.Error())
	}
	return err
}

// broken returns nil if a frame that cannot be read is the end of the log; otherwise it is
// damage.
func (r *reading) broken(s, next *segment, off int64, pos Pos, reason string) error {
	if next != nil {
		return damage(s, off, pos, reason+"; the next segment says that it was durable")
	}
	if pos < r.durable {
		return damage(s, off, pos, fmt.Sprintf("%s; the log was durable up to position %d", reason, r.durable))
	}
	at, found, err := r.win.proof(r.seed, off, pos)
	if err != nil {
		return err
	}
	if found {
		return damage(s, off, pos, fmt.Sprintf("%s; the frame at offset %d says that it was durable", reason, at))
	}
	for _, o := range r.others {
		if o.number == s.number+1 {
			return r.unheaded(o, pos, s.end()+Pos(o.size))
		}
	}
	return nil
}
