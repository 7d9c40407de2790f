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
// Salvage changes nothing. An error of fn or gap ends it and is returned. It needs 40 bytes of
// memory for each frame.
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
	if err := v.find(); err != nil {
		return err
	}
	return v.give()
}

type salvage struct {
	seed  uint32
	from  Pos
	begun bool
	most  int
	fn    func(Entry) error
	gap   func(Gap) error

	all    []*segment // durable: the header is sound
	frames []located
	synced Pos // up to where the log was synced, by what frames say

	at   Pos     // all entries before were given or are missing
	last located // the frame before at; without a segment: there is none
	cut  *cutter // nil: it must still find where an entry begins
}

// located is where a frame is.
type located struct {
	seg      *segment
	off      int64
	pos, end Pos // the part of its piece that counts
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
	s.header, s.durable, err = decodeHeader(v.seed, b)
	return err
}

// begunAs is the number under which a segment was begun, as its header or else its name says.
func (s *segment) begunAs() uint64 {
	if s.durable {
		return s.header.number
	}
	return s.number
}

// first is where the segments begin that were not released. A released segment gets another
// name, and no other one gets its old name.
func (v *salvage) first(names []string) Pos {
	first := Unknown
	for _, s := range v.all {
		if s.durable && slices.ContainsFunc(names, func(name string) bool {
			return filepath.Base(name) == filepath.Base(segmentName("", s.header.number))
		}) {
			first = min(first, s.base)
		}
	}
	if first == Unknown {
		return 0
	}
	return first
}

// find looks for all frames. A segment has the stream up to where one that was begun later
// goes on: a crash cut off the rest.
func (v *salvage) find() error {
	all := slices.SortedFunc(slices.Values(v.all), func(a, b *segment) int { return cmp.Compare(b.begunAs(), a.begunAs()) })
	limit := Unknown
	for _, s := range all {
		had := len(v.frames)
		if err := v.segment(s, limit); err != nil {
			return err
		}
		for _, f := range v.frames[had:] {
			limit = min(limit, f.pos)
		}
		if s.durable {
			limit = min(limit, s.base)
		}
	}
	slices.SortStableFunc(v.frames, func(a, b located) int { return cmp.Compare(a.pos, b.pos) })
	return nil
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

// segment notes the frames of a file that have something before a position.
func (v *salvage) segment(s *segment, limit Pos) error {
	least := v.from
	if s.durable {
		least = max(least, s.base)
	}
	var w window
	w.reset(s, v.reach(s))
	for off := int64(headerSize); off+frameSize <= s.size; {
		f, reason, err := w.frame(v.seed, off)
		if err != nil {
			return err
		}
		if reason == "" {
			v.synced = max(v.synced, f.synced)
			if end := min(f.end(), limit); end > least && f.pos < end {
				v.frames = append(v.frames, located{s, off, f.pos, end})
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

// give gives fn the entries.
func (v *salvage) give() error {
	v.at = v.from
	wins := map[*segment]*window{}
	for _, l := range v.frames {
		if l.end <= v.at || l.pos < v.at && v.last.seg != nil {
			continue
		}
		w := wins[l.seg]
		if w == nil {
			w = new(window)
			w.reset(l.seg, Unknown)
			wins[l.seg] = w
		}
		f, reason, err := w.frame(v.seed, l.off)
		if err != nil {
			return err
		}
		if reason != "" {
			continue // the disk returns other bytes than before
		}
		f.piece = f.piece[:l.end-l.pos]
		f.first = min(f.first, uint32(len(f.piece)))
		if err := v.frame(l, f); err != nil {
			return err
		}
	}
	return v.end()
}

// frame takes the next frame.
func (v *salvage) frame(l located, f frame) error {
	if l.pos > v.at {
		if err := v.missing(l.pos); err != nil {
			return err
		}
	}
	if v.cut == nil {
		v.cut = &cutter{from: max(v.from, f.pos+Pos(f.first)), most: v.most, fn: v.fn}
	}
	err := v.cut.add(f)
	v.at = l.end
	var m misfit
	if errors.As(err, &m) { // its checksum matches, but its entries make no sense
		v.at = l.pos
		return v.missing(l.end)
	}
	v.last = l
	return err
}

// missing reports a gap that begins where the last frame ended.
func (v *salvage) missing(to Pos) error {
	g := Gap{From: v.at, To: to}
	if s := v.last.seg; s != nil {
		g.File, g.Offset = s.name, v.last.off+padded(int(v.last.end-v.last.pos))
	}
	v.at, v.cut = max(v.at, to), nil
	if to == Unknown {
		v.at = g.From
	}
	return v.gap(g)
}

// end reports a gap if anything says that more was durable than was found.
func (v *salvage) end() error {
	if v.begun && len(v.frames) == 0 && !slices.ContainsFunc(v.all, func(s *segment) bool { return s.durable }) {
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
