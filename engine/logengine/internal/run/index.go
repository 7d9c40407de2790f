package run

import (
	"math"
	"math/bits"
	"sort"
)

// index is where a run has its items, sorted, in blocks of one size.
type index struct {
	kind    byte
	width   int // of an item
	off     int64
	items   uint64
	firsts  []uint64 // hi of the first item of each block
	filters []filter // one for each filterBlocks blocks; of keys only
}

func perBlock(width int) int { return (indexBlock - blockHead) / width }

// indexLen is how long an index is.
func indexLen(items uint64, width int) int64 {
	per := uint64(perBlock(width))
	n := int64(items/per) * indexBlock
	if rest := items % per; rest > 0 {
		n += blockHead + int64(rest)*int64(width)
	}
	return n
}

// place is where block b stands, and how many items it has.
func (x *index) place(b int) (off int64, items int) {
	per := perBlock(x.width)
	return x.off + int64(b)*indexBlock, int(min(uint64(per), x.items-uint64(b)*uint64(per)))
}

func putItem(b []byte, width int, i item) []byte {
	// Big-endian, so that items are in the order of their bytes.
	b = be.AppendUint64(b, i.hi)
	if width == keyWidth {
		b = be.AppendUint64(b, i.lo)
	}
	return le.AppendUint32(b, i.pos)
}

func getItem(b []byte, width, i int) (it item) {
	b = b[i*width:][:width]
	it.hi = be.Uint64(b)
	if width == keyWidth {
		it.lo = be.Uint64(b[8:])
	}
	it.pos = le.Uint32(b[width-4:])
	return it
}

// last returns the last block that may have items with hi, or -1. Those before it may have some
// too, as long as the first item behind has hi.
func (x *index) last(hi uint64) int {
	if hi == math.MaxUint64 {
		return len(x.firsts) - 1
	}
	return gallop(x.firsts, hi+1, x.kind == kindKeys) - 1
}

// may reports whether a filter lets through that block b has hi.
func (x *index) may(b int, hi uint64) bool {
	return x.filters == nil || x.filters[b/filterBlocks].may(hi)
}

// gallop returns the first of sorted numbers that is v or more. Those that are spread evenly,
// as hashes are, are guessed; the search widens from there, so that it is never slow.
func gallop(a []uint64, v uint64, even bool) int {
	lo, hi := 0, len(a)
	if even && hi > 64 {
		at := guess(v, hi)
		if a[at] < v {
			lo = at + 1
			for step := 8; lo+step < hi; step *= 2 {
				if a[lo+step] >= v {
					hi = lo + step
					break
				}
				lo += step + 1
			}
		} else {
			hi = at
			for step := 8; hi-step > lo; step *= 2 {
				if a[hi-step] < v {
					lo = hi - step + 1
					break
				}
				hi -= step
			}
		}
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return a[lo+i] >= v })
}

// search returns the first item of a block that is beyond (hi, lo).
func (x *index) search(payload []byte, hi, lo uint64) int {
	return sort.Search(len(payload)/x.width, func(i int) bool {
		it := getItem(payload, x.width, i)
		return it.hi > hi || it.hi == hi && it.lo > lo
	})
}

// find returns the last entry alive that items with (hi, lo) lead to. The run is held.
func (r *Run) find(x *index, hi, lo uint64) (pos uint32, ok bool, err error) {
	var buf *[indexBlock]byte
	for b := x.last(hi); b >= 0; b-- {
		if x.may(b, hi) {
			if buf == nil {
				buf = indexBuffers.Get().(*[indexBlock]byte)
				defer indexBuffers.Put(buf)
			}
			p, err := r.indexBlock(x, b, buf[:])
			if err != nil {
				return 0, false, err
			}
			for i := x.search(p, hi, lo) - 1; i >= 0; i-- {
				it := getItem(p, x.width, i)
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
		}
		if x.firsts[b] != hi {
			break
		}
	}
	return 0, false, nil
}

// indexBlock reads a block of an index.
func (r *Run) indexBlock(x *index, b int, buf []byte) ([]byte, error) {
	off, items := x.place(b)
	p, count, err := r.block(x.kind, off, buf[:blockHead+items*x.width])
	if err == nil && count != items {
		err = r.damage(off, "a block of an index with another number of items")
	}
	return p, err
}

// items gives all items of an index in order.
func (r *Run) items(x *index) stream {
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
		i = getItem(p, x.width, at)
		if at++; i.pos >= r.n {
			off, _ := x.place(b - 1)
			return i, false, r.damage(off, "an index leads to no entry")
		}
		return i, true, nil
	}
}

// guess is where v is in n numbers that are spread evenly.
func guess(v uint64, n int) int {
	hi, _ := bits.Mul64(v, uint64(n))
	return int(hi)
}
