package sstable

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// item is an item of an index: a key's hash or, in hi, an id, and the position that it leads
// to.
type item struct {
	hi, lo uint64
	pos    uint32
	table  uint32 // which sstable it is of; only for eachItem
}

func (i item) compare(o item) int {
	if i.hi != o.hi {
		return cmp.Compare(i.hi, o.hi)
	}
	if i.lo != o.lo {
		return cmp.Compare(i.lo, o.lo)
	}
	return cmp.Compare(i.pos, o.pos)
}

// stream gives items in order, until ok is false.
type stream func() (i item, ok bool, err error)

// merge gives the items of some streams to each, in order.
func merge(streams []stream, each func(item) error) error {
	type head struct {
		item
		next stream
	}
	var heads []head // a heap
	before := func(a, b *head) bool { return a.compare(b.item) < 0 }
	for _, next := range streams {
		i, ok, err := next()
		if err != nil {
			return err
		}
		if ok {
			heads = append(heads, head{i, next})
		}
	}
	heapify(heads, before)
	for len(heads) > 0 {
		if err := each(heads[0].item); err != nil {
			return err
		}
		i, ok, err := heads[0].next()
		switch {
		case err != nil:
			return err
		case ok:
			heads[0].item = i
		default:
			last := len(heads) - 1
			heads[0] = heads[last]
			heads = heads[:last]
		}
		siftDown(heads, 0, before)
	}
	return nil
}

// heapify makes a heap of some values: the first comes before all others.
func heapify[T any](all []T, before func(a, b *T) bool) {
	for i := len(all)/2 - 1; i >= 0; i-- {
		siftDown(all, i, before)
	}
}

// siftDown mends a heap in which the value at i may come later than it should.
func siftDown[T any](all []T, i int, before func(a, b *T) bool) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(all); c++ {
			if before(&all[c], &all[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		all[i], all[least] = all[least], all[i]
		i = least
	}
}

// sorted returns items in order. Hashes, and most ids, are spread evenly, so nearly all are in
// their places once they are in as many buckets as there are items.
func sorted(items []item) stream {
	least, most := uint64(math.MaxUint64), uint64(0)
	for _, i := range items {
		least, most = min(least, i.hi), max(most, i.hi)
	}
	most = max(most, least) - least
	shift := max(0, bits.Len64(most)-bits.Len(uint(len(items))))
	ends := make([]int, most>>shift+2)
	for _, i := range items {
		ends[(i.hi-least)>>shift+1]++
	}
	for k := range ends[1:] {
		ends[k+1] += ends[k]
	}
	all := make([]item, len(items))
	for _, i := range items {
		at := &ends[(i.hi-least)>>shift]
		all[*at] = i
		*at++
	}
	from := 0
	for _, to := range ends {
		slices.SortFunc(all[from:to], item.compare)
		from = to
	}
	return func() (i item, ok bool, err error) {
		if len(all) == 0 {
			return i, false, nil
		}
		i, all = all[0], all[1:]
		return i, true, nil
	}
}
