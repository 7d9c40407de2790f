package sstable

import (
	"math/bits"
	"sync/atomic"
)

// groupWords is how many words of bits make a group, unless Config.GroupWords says otherwise.
const groupWords = 1 << 14 / 64

// Live says which entries of an sstable are alive, by position: at first all. A deleted entry
// stays deleted. Many goroutines may call its methods; a count is exact if no entry is deleted
// meanwhile.
type Live struct {
	n     uint32
	dead  []uint64        // a bit for each entry; those after the last are set
	group uint32          // words of a group
	left  []atomic.Uint32 // live entries of each group
}

func newLive(n, group uint32) *Live {
	bits := int(64 * group)
	l := &Live{n: n, dead: make([]uint64, (int(n)+63)/64), group: group, left: make([]atomic.Uint32, (int(n)+bits-1)/bits)}
	if tail := n % 64; tail != 0 {
		l.dead[n/64] = ^uint64(0) << tail
	}
	for g := range l.left {
		l.left[g].Store(min(64*group, n-uint32(g)*64*group))
	}
	return l
}

func (l *Live) word(i uint32) uint64 { return atomic.LoadUint64(&l.dead[i]) }

// Len is how many entries there are, deleted or not.
func (l *Live) Len() uint32 { return l.n }

// Alive reports whether an entry is there and alive.
func (l *Live) Alive(pos uint32) bool { return pos < l.n && l.word(pos/64)>>(pos%64)&1 == 0 }

// Kill deletes an entry, and reports whether it was alive.
func (l *Live) Kill(pos uint32) bool {
	return pos < l.n && l.kill(pos/64, 1<<(pos%64)) == 1
}

// kill deletes the entries of a word that are in mask, and returns how many were alive.
func (l *Live) kill(i uint32, mask uint64) int {
	n := bits.OnesCount64(mask &^ atomic.OrUint64(&l.dead[i], mask))
	if n > 0 {
		l.left[i/l.group].Add(-uint32(n))
	}
	return n
}

// mask has the bits of [from, to) that are in the word of from.
func mask(from, to uint32) uint64 {
	m := ^uint64(0) << (from % 64)
	if end := from/64*64 + 64; to < end {
		m &= ^uint64(0) >> (end - to)
	}
	return m
}

// Count is how many entries in [from, to) are alive.
func (l *Live) Count(from, to uint32) (n int) {
	group := 64 * l.group
	for to = min(to, l.n); from < to; {
		if from%group == 0 && from+group <= to {
			n += int(l.left[from/group].Load())
			from += group
			continue
		}
		n += bits.OnesCount64(^l.word(from/64) & mask(from, to))
		from = from/64*64 + 64
	}
	return n
}

// Next returns the first live entry in [from, to).
func (l *Live) Next(from, to uint32) (pos uint32, ok bool) {
	group := 64 * l.group
	for to = min(to, l.n); from < to; {
		if from%group == 0 && l.left[from/group].Load() == 0 {
			from += group
			continue
		}
		if w := ^l.word(from/64) & mask(from, to); w != 0 {
			return from/64*64 + uint32(bits.TrailingZeros64(w)), true
		}
		from = from/64*64 + 64
	}
	return 0, false
}

// Prev returns the last live entry in [from, to).
func (l *Live) Prev(from, to uint32) (pos uint32, ok bool) {
	group := 64 * l.group
	for to = min(to, l.n); from < to; {
		if to%group == 0 && l.left[to/group-1].Load() == 0 {
			to -= group
			continue
		}
		start := (to - 1) / 64 * 64
		if w := ^l.word(start/64) & mask(max(from, start), to); w != 0 {
			return start + 63 - uint32(bits.LeadingZeros64(w)), true
		}
		to = start
	}
	return 0, false
}
