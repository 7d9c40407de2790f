package sstable

import "encoding/binary"

// Scan goes through the entries of a range of positions. It has a block of them in memory and
// keeps the file open until Close: a caller that waits for long should keep a Place instead.
type Scan struct {
	r        *Table
	from, to uint32 // the range that is left
	back     bool
	all      bool // deleted entries too
	most     int  // bytes of a long value that are read; negative: all
	buf      *buffer
	block    block // the one read last
	pos      uint32
	read     int // bytes that the last Next read
	entry    Entry
	err      error
}

// Scan goes through the live entries in [from, to), from the first to the last.
func (r *Table) Scan(from, to uint32) *Scan { return r.scan(from, to, false) }

// ScanBack goes through the live entries in [from, to), from the last to the first.
func (r *Table) ScanBack(from, to uint32) *Scan { return r.scan(from, to, true) }

// Heads makes Next read only the first bytes of long values, at least so many. Their checksum
// is not checked then. It returns s.
func (s *Scan) Heads(most int) *Scan {
	s.most = most
	return s
}

func (r *Table) scan(from, to uint32, back bool) *Scan {
	s := &Scan{r: r, from: from, to: min(to, r.n), back: back, most: -1}
	if !r.hold() {
		s.err = ErrClosed
		return s
	}
	s.buf = dataBuffers.Get().(*buffer)
	return s
}

// Next turns to the next entry that is alive now, and reports whether there is one. If not,
// Err says whether it is the end.
func (s *Scan) Next() bool {
	s.read = 0
	if s.err != nil || s.buf == nil {
		return false
	}
	pos, ok := s.step()
	if !ok {
		return false
	}
	s.pos = pos
	if pos < s.block.first || pos-s.block.first >= uint32(s.block.count) {
		i := s.r.blockAt(pos)
		if s.cuts(i) {
			if cut, err := s.head(i); cut || err != nil {
				s.err = err
				return err == nil
			}
		}
		s.read = int(s.r.blockEnd(i) - s.r.blocks[i].off)
		if s.buf.large() {
			s.buf = new(buffer) // it is not kept
		}
		if s.block, s.err = s.r.entries(i, s.buf); s.err != nil {
			return false
		}
	}
	s.entry = s.block.entry(int(pos - s.block.first))
	return true
}

// cuts reports whether only the first bytes of the value in a block are read.
func (s *Scan) cuts(i int) bool {
	least := int(s.r.blockEnd(i)-s.r.blocks[i].off) - blockHead - mostHead
	return s.most >= 0 && least > s.most && s.r.alone(i)
}

// whole reads the whole entry that Next turned to, if that is cut, and returns how many bytes it
// read. The value is in buf, which many scans may share, so that only one long value is in
// memory.
func (s *Scan) whole(buf *buffer) (read int, err error) {
	if !s.entry.Cut {
		return 0, nil
	}
	i := s.r.blockAt(s.pos)
	b, err := s.r.entries(i, buf)
	if err != nil {
		return 0, err
	}
	s.entry = b.entry(0)
	return int(s.r.blockEnd(i) - s.r.blocks[i].off), nil
}

// head reads the first bytes of the value of the only entry of a block, which has more. cut is
// false if the block is packed, and so not long, or damaged.
func (s *Scan) head(i int) (cut bool, err error) {
	s.entry = Entry{Place: s.r.blocks[i].Place, Pos: s.r.blocks[i].first, Cut: true}
	if s.most == 0 {
		return true, nil
	}
	s.block = block{} // its buffer is overwritten
	b := s.buf.sized(blockHead + mostHead + s.most)
	s.read = len(b)
	if err := s.r.readAt(b, s.r.blocks[i].off); err != nil || b[9] != plain {
		return false, err
	}
	b = b[blockHead:]
	for range leastHead { // a number in each column
		_, n := binary.Uvarint(b)
		if n <= 0 {
			return false, nil // it is damaged: reading the whole block will say so
		}
		b = b[n:]
	}
	s.entry.Value = b[:s.most]
	return true, nil
}

func (s *Scan) step() (pos uint32, ok bool) {
	switch {
	case s.back:
		pos, ok = s.r.Prev(s.from, s.to)
		s.to = pos
	case s.all:
		pos, ok = s.from, s.from < s.to
		s.from = pos + 1
	default:
		pos, ok = s.r.Live.Next(s.from, s.to)
		s.from = pos + 1
	}
	if !ok {
		s.from = s.to
	}
	return pos, ok
}

// Entry is the entry that Next turned to. Its value is valid until the next call of Next or
// Close.
func (s *Scan) Entry() Entry { return s.entry }

// At is the position that Next turned to, or at which it met a damaged block.
func (s *Scan) At() uint32 { return s.pos }

// Err is why Next found no entry; nil at the end.
func (s *Scan) Err() error { return s.err }

// Close ends the scan. It is idempotent.
func (s *Scan) Close() error {
	if s.buf == nil {
		return nil
	}
	s.buf.leave()
	s.buf, s.block, s.entry = nil, block{}, Entry{}
	return s.r.release()
}
