package sstable

import (
	"math/bits"
	"sort"
)

// index says where the sorted items of an index are in the file, in blocks of one size.
type index struct {
	layout
	kind   byte
	off    int64
	items  uint64
	firsts []uint64 // hi of the first item of each block
}

// perBlock is how many items a full block of an index has.
func (l *layout) perBlock() int { return (indexBlock - blockHead) / l.width }

// blockLen is how long a block is, with its head. The rest of a full block is zeros.
func (l *layout) blockLen(items int) int {
	if items == l.perBlock() {
		return indexBlock
	}
	return blockHead + items*l.width
}

// indexLen is how long an index is.
func (l *layout) indexLen(items uint64) int64 {
	per := uint64(l.perBlock())
	n := int64(items/per) * indexBlock
	if rest := items % per; rest > 0 {
		n += int64(l.blockLen(int(rest)))
	}
	return n
}

// place is where block b is, and how many items it has.
func (x *index) place(b int) (off int64, items int) {
	per := x.perBlock()
	return x.off + int64(b)*indexBlock, int(min(uint64(per), x.items-uint64(b)*uint64(per)))
}

// layout is how the items of an index are stored: each number takes as many bytes as the
// largest of the sstable.
type layout struct {
	base       uint64 // is subtracted from hi
	hi, lo     int    // bytes of each
	pos, width int    // bytes of the position, and of the whole item
}

// layout returns the layout of an index.
func (f *footer) layout(kind byte) layout {
	l := layout{hi: 8, lo: 8, pos: bytesOf(max(f.entries, 1) - 1)}
	if kind == kindIDs {
		l.base, l.hi, l.lo = f.minID, bytesOf(f.maxID-f.minID), 0
	}
	l.width = l.hi + l.lo + l.pos
	return l
}

// bytesOf is how many bytes a number takes, at least one.
func bytesOf(v uint64) int { return max(1, (bits.Len64(v)+7)/8) }

// put appends an item. The most significant bytes come first.
func (l *layout) put(b []byte, i item) []byte {
	b = appendUint(b, i.hi-l.base, l.hi)
	b = appendUint(b, i.lo, l.lo)
	return appendUint(b, uint64(i.pos), l.pos)
}

// item returns the i-th item of a block.
func (l *layout) item(b []byte, i int) (it item) {
	b = b[i*l.width:][:l.width]
	it.hi = l.base + getUint(b[:l.hi])
	if l.lo > 0 {
		it.lo = getUint(b[l.hi:][:l.lo])
	}
	it.pos = uint32(getUint(b[l.hi+l.lo:]))
	return it
}

func appendUint(b []byte, v uint64, n int) []byte {
	for n--; n >= 0; n-- {
		b = append(b, byte(v>>(8*n)))
	}
	return b
}

func getUint(b []byte) (v uint64) {
	if len(b) == 8 {
		return be.Uint64(b)
	}
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// last returns the last block that may have items with hi, or -1. A block before it may have
// some too if the first item of the next one has hi.
func (x *index) last(hi uint64) int {
	return sort.Search(len(x.firsts), func(i int) bool { return x.firsts[i] > hi }) - 1
}

// search returns the index of the first item of a block that is beyond (hi, lo).
func (x *index) search(payload []byte, hi, lo uint64) int {
	return sort.Search(len(payload)/x.width, func(i int) bool {
		it := x.item(payload, i)
		return it.hi > hi || it.hi == hi && it.lo > lo
	})
}

// find returns the last live entry that items with (hi, lo) lead to. The caller must have
// called hold.
func (r *Table) find(x *index, hi, lo uint64) (pos uint32, ok bool, err error) {
	var buf *[indexBlock]byte
	for b := x.last(hi); b >= 0; b-- {
		if buf == nil {
			buf = indexBuffers.Get().(*[indexBlock]byte)
			defer indexBuffers.Put(buf)
		}
		p, err := r.indexBlock(x, b, buf[:])
		if err != nil {
			return 0, false, err
		}
		for i := x.search(p, hi, lo) - 1; i >= 0; i-- {
			it := x.item(p, i)
			if it.hi != hi || it.lo != lo {
				return 0, false, nil
			}
			if it.pos >= r.n {
				off, _ := x.place(b)
				return 0, false, r.damage(off, "an index leads to no entry")
			}
			if r.Alive(it.pos) {
				return it.pos, true, nil
			}
		}
		if x.firsts[b] != hi {
			break
		}
	}
	return 0, false, nil
}

// indexBlock reads a block of an index.
func (r *Table) indexBlock(x *index, b int, buf []byte) ([]byte, error) {
	off, items := x.place(b)
	p, count, err := r.block(x.kind, off, buf[:x.blockLen(items)])
	switch {
	case err != nil:
		return nil, err
	case count != items:
		return nil, r.damage(off, "a block of an index with another number of items")
	}
	return p[:items*x.width], nil
}

// items gives all items of an index in order.
func (r *Table) items(x *index) stream {
	var p []byte
	buf := make([]byte, indexBlock)
	at, b := 0, 0
	return func() (i item, ok bool, err error) {
		if at == len(p)/x.width {
			if b == len(x.firsts) {
				return i, false, nil
			}
			if p, err = r.indexBlock(x, b, buf); err != nil {
				return i, false, err
			}
			at = 0
			b++
		}
		i = x.item(p, at)
		if at++; i.pos >= r.n {
			off, _ := x.place(b - 1)
			return i, false, r.damage(off, "an index leads to no entry")
		}
		return i, true, nil
	}
}
