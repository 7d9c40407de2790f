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

// Gap is a part of a log that cannot be read, or of which there is no file. To is Unknown for one at the
// end of the log.
type Gap struct {
	File     string // behind what can be read of it; empty: before all that can be read, or nothing can
	Offset   int64
	From, To Pos
}

// Salvage gives fn the entries that can be read of a log that is not open, from a position on:
// all that are whole in frames that are sound, in their order, whatever is missing before them. The
// segments are the files with these names, each known by its header rather than its name. gap is called
// where something that was durable is missing, between the entries before and after it. From the
// position Unknown on is from the first one of those segments that were not released.
//
// Nothing is changed. An error of fn or gap ends it and is returned. It needs 40 bytes of memory for
// each frame.
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
	synced Pos // up to where some frame says that the log was

	at   Pos     // all before has been given, or is missing
	last located // the frame before it; of no segment: there is none
	cut  *cutter // nil: where an entry begins is to be found
}

// located is where a frame is.
type located struct {
	seg      *segment
	off      int64
	pos, end Pos // of what counts of its piece
}

func (v *salvage) open(fs vfs.FS, name string) (err error) {
	s := &segment{name: name}
	s.number, _ = parseName(filepath.Base(name))
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

// begunAs is the number under which a segment was begun, as far as that is known.
func (s *segment) begunAs() uint64 {
	if s.durable {
		return s.header.number
	}
	return s.number
}

// first is where those segments begin that were not released. A released one gets another name, and
// none gets its old one.
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

// find looks for all frames. A segment has the stream up to where one that was begun later goes on:
// what is behind, a crash cut off.
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

// reach is no less than the position of any frame in a segment.
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

// segment notes the frames of a file that hold something below a position.
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

// give gives the entries on.
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
			continue // the disk reads it otherwise than before
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
	if errors.As(err, &m) { // its checksum is right, and yet it is nothing
		v.at = l.pos
		return v.missing(l.end)
	}
	v.last = l
	return err
}

// missing tells of a gap from where the last frame ended.
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

// end looks whether anything says that more was durable than there is.
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

// StoreOf returns of which store's log a file is a segment; ok is false if its header does not tell.
func StoreOf(fs vfs.FS, name string) (id uint64, ok bool, err error) {
	file, err := fs.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b := make([]byte, headerSize)
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	id = binary.LittleEndian.Uint64(b[storeAt:])
	_, ok, err = decodeHeader(seed(id), b)
	return id, ok, err
}
