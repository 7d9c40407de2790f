package sstable

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Salvaged is a damaged sstable, as far as it can be read. Entries are not found by key or id.
// RestoreBits may be used to delete entries.
type Salvaged struct {
	*Table
	Holes []Hole // the parts that cannot be read, in order; none: all entries can be read

	found []found
}

// Hole is a part of an sstable that cannot be read.
type Hole struct {
	Offset int64

	// From and To are the positions of the entries that were there, if Counted. Otherwise it
	// is only known that something was there.
	From, To uint32
	Counted  bool

	// After and Before are the places of the entries around it; nil: there is none.
	After, Before *Place
}

// found is a block of entries that can be read.
type found struct {
	off    int64
	length int
	count  uint32
	first  uint32 // position of its first entry, if placed
	placed bool

	from, to Place // of its first and last entry
}

// Salvage opens what can be read of an sstable that should have so many entries; 0: not known.
// It reads the whole file. It finds blocks by the table of blocks or, if that cannot be read,
// by looking for sound ones. If the header is not sound, the footer is used. If nothing can be
// read, Salvage returns a *vfs.DamageError.
func Salvage(fs vfs.FS, dir string, number uint64, cfg *Config, entries uint32) (_ *Salvaged, err error) {
	d := cfg.withDefaults()
	r := &Table{fs: fs, name: Name(dir, number), number: number}
	if r.file, err = fs.Open(r.name); err != nil {
		return nil, err
	}
	r.refs.Store(1)
	s := &Salvaged{Table: r}
	if err := s.open(d.ID, entries); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	return s, nil
}

func (s *Salvaged) open(store uint64, entries uint32) error {
	size, err := s.file.Size()
	if err != nil {
		return err
	}
	if err := s.loadHeader(size, store); err != nil && (lost(err) != nil || !s.byFooter(size)) {
		return err
	}
	if err := s.read(size, entries); err != nil {
		return err
	}
	if len(s.found) == 0 {
		return s.damage(0, "nothing in it can be read")
	}
	return nil
}

// byFooter takes the seed of the checksums from the footer, if the header is not sound.
func (s *Salvaged) byFooter(size int64) bool {
	if size < HeaderSize+footerSize {
		return false
	}
	head, foot := make([]byte, HeaderSize), make([]byte, blockHead)
	if s.readAt(head, 0) != nil || vfs.HeaderSum(head, 0) == le.Uint32(head[12:]) || s.readAt(foot, size-footerSize) != nil {
		return false // it cannot be read, or is the header of another sstable
	}
	s.seed = le.Uint32(foot[12:])
	return s.loadFooter(size) == nil
}

// read finds the blocks of entries.
func (s *Salvaged) read(size int64, entries uint32) error {
	var damage *vfs.DamageError
	end := size
	err := s.loadFooter(size)
	if err == nil {
		entries, end = uint32(s.footer.entries), s.footer.part(kindData).end
	} else if !errors.As(err, &damage) {
		return err
	}
	s.Live = newLive(entries, groupWords)
	known := err == nil
	if known {
		err = s.loadBlocks()
		if err == nil {
			return s.byTable()
		}
		if !errors.As(err, &damage) {
			return err
		}
		s.blocks = nil
	}
	return s.byLooking(end, entries, known)
}

// byTable reads the blocks that the table names.
func (s *Salvaged) byTable() error {
	var buf buffer
	for i := range s.blocks {
		ref, next := &s.blocks[i], s.n
		if i+1 < len(s.blocks) {
			next = s.blocks[i+1].first
		}
		b, err := s.entries(i, &buf)
		var damage *vfs.DamageError
		if errors.As(err, &damage) {
			s.hole(Hole{Offset: ref.off, From: ref.first, To: next, Counted: true})
			continue
		}
		if err != nil {
			return err
		}
		s.add(found{off: ref.off, length: int(s.blockEnd(i) - ref.off), count: uint32(b.count), first: ref.first, placed: true,
			from: b.place(0), to: b.place(b.count - 1)})
	}
	return nil
}

// hole adds a hole, and joins it with the one before if they touch.
func (s *Salvaged) hole(h Hole) {
	if n := len(s.Holes); n > 0 && h.Counted && s.Holes[n-1].Counted && s.Holes[n-1].To == h.From {
		s.Holes[n-1].To = h.To
		return
	}
	if n := len(s.found); n > 0 {
		h.After = &s.found[n-1].to
	}
	s.Holes = append(s.Holes, h)
}

// add adds a block that was found.
func (s *Salvaged) add(f found) {
	if n := len(s.Holes); n > 0 && s.Holes[n-1].Before == nil {
		s.Holes[n-1].Before = &f.from
	}
	s.found = append(s.found, f)
}

// byLooking looks for blocks from the header up to end. known says that the entries end there.
func (s *Salvaged) byLooking(end int64, entries uint32, known bool) error {
	l := looking{s: s, end: end, left: 32*end + 64<<20}
	count, lost, pos := uint32(0), 0, int64(HeaderSize)
	for pos < end {
		f, ok, err := l.next(pos)
		if err != nil {
			return err
		}
		if n := len(s.found); ok && n > 0 && f.from.Compare(s.found[n-1].to) < 0 || ok && f.count > entries-count && known {
			ok = false
		}
		if !ok {
			break
		}
		if f.off > pos {
			s.hole(Hole{Offset: pos})
			lost++
		}
		f.first, f.placed = count, lost == 0
		s.add(f)
		count += f.count
		pos = f.off + int64(f.length)
	}
	if known && pos < end || !known && (entries == 0 || count < entries) && (lost == 0 || entries == 0) {
		s.hole(Hole{Offset: pos, From: count, To: entries, Counted: lost == 0 && entries > count})
	}
	return nil
}

// looking looks for sound blocks.
type looking struct {
	s    *Salvaged
	end  int64
	left int64 // how many bytes may still be checked in vain
	buf  buffer
	b    []byte // what was read
	off  int64  // from where
}

const lookBytes = 256 << 10

// sound reads the block of entries at off, which has that head; ok is false if it is not sound.
func (l *looking) sound(off int64, head []byte) (f found, ok bool, err error) {
	length, count := int64(le.Uint32(head[4:])), int64(le.Uint32(head[12:]))
	most := length / leastHead
	if head[9] == packed {
		most = maxPacked / leastHead
	}
	if head[8] != kindData || head[9] > packed || head[10] != 0 || head[11] != 0 || length == 0 || off+blockHead+length > l.end || count == 0 || count > most || l.left < length {
		return f, false, nil
	}
	b, err := l.s.dataBlock(off, int(blockHead+length), &l.buf)
	if err != nil {
		l.left -= length
		return f, false, lost(err)
	}
	return found{off: off, length: int(blockHead + length), count: uint32(count), from: b.place(0), to: b.place(b.count - 1)}, true, nil
}

// lost is nil for damage.
func lost(err error) error {
	var damage *vfs.DamageError
	if errors.As(err, &damage) {
		return nil
	}
	return err
}

// next returns the first sound block from off on.
func (l *looking) next(off int64) (f found, ok bool, err error) {
	for ; off+blockHead <= l.end && l.left > 0; off++ {
		if off < l.off || off+blockHead > l.off+int64(len(l.b)) {
			n := int(min(lookBytes, l.end-off))
			l.b, l.off = grown(&l.b, n), off
			if err := l.s.readAt(l.b, off); err != nil {
				return f, false, lost(err)
			}
		}
		b := l.b[off-l.off:]
		if b[8] != kindData {
			continue
		}
		if f, ok, err = l.sound(off, b[:blockHead]); ok || err != nil {
			return f, ok, err
		}
	}
	return f, false, nil
}

// Each gives all entries that can be read, deleted or not, in order, until fn returns an
// error. placed says that the entry's position is known, and so whether it is alive. An entry
// is valid until fn returns.
func (s *Salvaged) Each(fn func(e Entry, placed bool) error) error {
	var buf buffer
	for _, f := range s.found {
		b, err := s.dataBlock(f.off, f.length, &buf)
		if err != nil {
			return err
		}
		b.first = f.first
		for i := range b.count {
			if err := fn(b.entry(i), f.placed); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lost gives the ids and positions of entries that cannot be read, as far as the index of ids
// can be read: maybe not all, maybe none.
func (s *Salvaged) Lost(each func(id uint64, pos uint32)) error {
	x := &s.ids
	if x.items == 0 {
		return nil
	}
	holes := slices.DeleteFunc(slices.Clone(s.Holes), func(h Hole) bool { return !h.Counted })
	buf := make([]byte, indexBlock)
	for b := 0; uint64(b)*uint64(x.perBlock()) < x.items; b++ {
		items, err := s.indexBlock(x, b, buf)
		if err != nil {
			if err := lost(err); err != nil {
				return err
			}
			continue
		}
		for i := range len(items) / x.width {
			it := x.item(items, i)
			if _, in := slices.BinarySearchFunc(holes, it.pos, func(h Hole, pos uint32) int {
				if pos >= h.From && pos < h.To {
					return 0
				}
				return cmp.Compare(h.From, pos)
			}); in {
				each(it.hi, it.pos)
			}
		}
	}
	return nil
}

// addPlace adds the entry at a position to the parts of queues. It must come after all entries
// before.
func addPlace(queues []Queue, p Place, pos uint32) []Queue {
	if k := len(queues); k == 0 || queues[k-1].Queue != p.Queue {
		queues = append(queues, Queue{Queue: p.Queue, From: pos, MinAt: p.At})
	}
	q := &queues[len(queues)-1]
	q.To, q.MaxAt = pos+1, p.At
	return queues
}
