package sstable

import (
	"math/bits"
	"sort"
)

// ranks is a set of numbers below a bound. It tells how many of them are below a number, and
// which is the i-th.
type ranks struct {
	words []uint64
	sums  []uint32 // for every eighth word, how many numbers are in all words before it
}

func newRanks(bound uint32) ranks { return ranks{words: make([]uint64, (int(bound)+63)/64)} }

func (s *ranks) add(i uint32)      { s.words[i/64] |= 1 << (i % 64) }
func (s *ranks) has(i uint32) bool { return s.words[i/64]>>(i%64)&1 != 0 }

// seal counts the numbers. None may be added afterwards.
func (s *ranks) seal() {
	n := uint32(0)
	s.sums = make([]uint32, 0, len(s.words)/8+1)
	for i, w := range s.words {
		if i%8 == 0 {
			s.sums = append(s.sums, n)
		}
		n += uint32(bits.OnesCount64(w))
	}
}

// below is how many numbers are below i, which must be below the bound.
func (s *ranks) below(i uint32) uint32 {
	n := s.sums[i/512]
	for w := i / 512 * 8; w < i/64; w++ {
		n += uint32(bits.OnesCount64(s.words[w]))
	}
	return n + uint32(bits.OnesCount64(s.words[i/64]&(1<<(i%64)-1)))
}

// at returns the i-th number, from 0 on, which must exist.
func (s *ranks) at(i uint32) uint32 {
	eighth := sort.Search(len(s.sums), func(k int) bool { return s.sums[k] > i }) - 1
	i -= s.sums[eighth]
	for w := eighth * 8; ; w++ {
		word := s.words[w]
		if n := uint32(bits.OnesCount64(word)); i >= n {
			i -= n
			continue
		}
		for ; i > 0; i-- {
			word &= word - 1
		}
		return uint32(w*64 + bits.TrailingZeros64(word))
	}
}
