package wal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Unknown is a position that is not known.
const Unknown Pos = math.MaxUint64

// Gap is a part of a log that is missing or cannot be read. At the end of the log To is
// Unknown.
type Gap struct {
	File     string // the gap follows what can be read of it; empty: nothing before the gap can be read
	Offset   int64
	From, To Pos
}

// Salvage gives fn the entries that can be read of a log that is not open, from a position on:
// all that are whole in sound frames, in their order, whatever is missing before them. names
// are the files of the segments. Each is known by its header rather than its name. Where
// something durable is missing, Salvage calls gap between the entries before and after it. If
// from is Unknown, it begins with the first segment that was not released.
//
// Salvage changes nothing. An error of fn or gap ends it and is returned.
func Salvage(fs vfs.FS, names []string, cfg *Config, from Pos, fn func(Entry) error, gap func(Gap) error) (err error) {
	d := cfg.withDefaults()
	v := salvage{seed: seed(d.ID), from: from, begun: d.Begun, most: d.MaxEntry, fn: fn, gap: gap}
	defer func() {
		for _, s := range v.all {
			err = errors.Join(err, s.file.Close())
		}
	}()
	for _, name := range names {
		if err := v.open(fs, name); err != nil {
			return err
		}
	}
	if from == Unknown {
		v.from = v.first(names)
	}
	return v.segments()
}

type salvage struct {
	seed  uint32
	from  Pos
	begun bool
	most  int
	fn    func(Entry) error
	gap   func(Gap) error

	all    []*segment // durable: the header is sound
	synced Pos        // up to where the log was synced, by what frames say
	win    window

	at   Pos     // all entries before were given or are missing
	last Gap     // where the frame before at ends; without a file: there is none
	cut  *cutter // nil: it must still find where an entry begins
}

func (v *salvage) open(fs vfs.FS, name string) (err error) {
	s := &segment{name: name}
	s.number, _ = segmentFiles.Parse(name)
	if s.file, err = fs.Open(name); err != nil {
		return err
	}
	v.all = append(v.all, s)
	if s.size, err = s.file.Size(); err != nil {
		return err
	}
	b := make([]byte, headerSize)
	if n, err := s.file.ReadAt(b, 0); n < headerSize {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if s.header, s.durable, err = decodeHeader(v.seed, b); s.durable {
		s.number = s.header.number
	}
	return err
}

// first is where the segments begin that were not released. A released segment gets another
// name, and no other one gets its old name.
func (v *salvage) first(names []string) Pos {
	first := Unknown
	for _, s := range v.all {
		if s.durable && slices.ContainsFunc(names, func(name string) bool {
			return filepath.Base(name) == filepath.Base(segmentName("", s.number))
		}) {
			first = min(first, s.base)
		}
	}
	if first == Unknown {
		return 0
	}
	return first
}

// segments gives fn the entries of all segments, in the order in which they were begun. A
// segment has the stream up to where one that was begun later goes on: a crash cut off the
// rest.
func (v *salvage) segments() error {
	slices.SortFunc(v.all, func(a, b *segment) int { return cmp.Compare(a.number, b.number) })
	limits, limit := make([]Pos, len(v.all)), Unknown
	for i, s := range slices.Backward(v.all) {
		limits[i] = limit
		start, err := v.start(s)
		if err != nil {
			return err
		}
		limit = min(limit, start)
	}
	v.at = v.from
	for i, s := range v.all {
		err := v.frames(s, func(off int64, f frame) (bool, error) {
			end := min(f.end(), limits[i])
			if end <= max(f.pos, v.at) || f.pos < v.at && v.last.File != "" {
				return true, nil
			}
			f.piece = f.piece[:end-f.pos]
			f.first = min(f.first, uint32(len(f.piece)))
			return true, v.frame(s.name, off, f)
		})
		if err != nil {
			return err
		}
	}
	return v.end()
}

// start is where a segment goes on; Unknown: it has nothing that counts.
func (v *salvage) start(s *segment) (start Pos, err error) {
	if s.durable {
		return s.base, nil
	}
	start = Unknown
	err = v.frames(s, func(_ int64, f frame) (bool, error) {
		if f.end() > v.from {
			start = f.pos
		}
		return start == Unknown, nil
	})
	return start, err
}

// reach is a position that no frame in a segment exceeds.
func (v *salvage) reach(s *segment) Pos {
	if s.durable {
		return s.end()
	}
	most := v.from
	for _, o := range v.all {
		if o.durable {
			most = max(most, o.end())
		}
	}
	return most + 1<<40 // segments between may be missing
}

// frames gives fn the sound frames of a file until it returns false.
func (v *salvage) frames(s *segment, fn func(off int64, f frame) (more bool, err error)) error {
	w := &v.win
	w.reset(s, v.reach(s))
	for off := int64(headerSize); off+frameSize <= s.size; {
		f, reason, err := w.frame(v.seed, off)
		if err != nil {
			return err
		}
		if reason == "" {
			v.synced = max(v.synced, f.synced)
			if more, err := fn(off, f); !more || err != nil {
				return err
			}
			off += padded(len(f.piece))
			continue
		}
		b, err := w.bytes(off, frameSize)
		if err != nil || len(b) < frameSize {
			return err
		}
		off += align
		if n := w.zeros(off - align); n > frameSize {
			off += int64(n-frameSize) / align * align // no frame begins in zeros
		}
	}
	return nil
}

// frame takes the next frame.
func (v *salvage) frame(name string, off int64, f frame) error {
	if f.pos > v.at {
		if err := v.missing(f.pos); err != nil {
			return err
		}
	}
	if v.cut == nil {
		v.cut = &cutter{from: max(v.from, f.pos+Pos(f.first)), most: v.most, fn: v.fn}
	}
	err := v.cut.add(f)
	if errors.As(err, new(misfit)) { // its checksum matches, but its entries make no sense
		v.at = f.pos
		return v.missing(f.end())
	}
	v.at, v.last = f.end(), Gap{File: name, Offset: off + padded(len(f.piece))}
	return err
}

// missing reports a gap that begins where the last frame ended.
func (v *salvage) missing(to Pos) error {
	g := v.last
	g.From, g.To = v.at, to
	if v.cut = nil; to != Unknown {
		v.at = max(v.at, to)
	}
	return v.gap(g)
}

// end reports a gap if anything says that more was durable than was found.
func (v *salvage) end() error {
	if v.begun && v.last.File == "" && !slices.ContainsFunc(v.all, func(s *segment) bool { return s.durable }) {
		return v.missing(Unknown)
	}
	for _, s := range v.all {
		if s.durable && s.base > v.at || v.synced > v.at {
			return v.missing(Unknown)
		}
	}
	return nil
}

// StoreOf returns the id of the store to which a segment belongs; ok is false if its header
// does not tell.
func StoreOf(fs vfs.FS, name string) (id uint64, ok bool, err error) {
	b, _, err := vfs.ReadStart(fs, name, headerSize)
	if err != nil {
		return 0, false, err
	}
	b = append(b, zeros[:headerSize-len(b)]...)
	id = binary.LittleEndian.Uint64(b[storeAt:])
	_, ok, err = decodeHeader(seed(id), b)
	return id, ok, err
}
