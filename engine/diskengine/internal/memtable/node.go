package memtable

import "unsafe"

// item is an entry in an order.
type item struct {
	hi  uint32 // the first part of the order: a place, a queue or a hash
	ref uint32 // the entry; in nodes above the leaves, the node below
	at  int64
	id  uint64
}

func (a *item) less(b *item) bool {
	if a.hi != b.hi {
		return a.hi < b.hi
	}
	if a.at != b.at {
		return a.at < b.at
	}
	return a.id < b.id
}

const (
	nodeSize   = 1 << 10
	itemSize   = int(unsafe.Sizeof(item{}))
	leafItems  = (nodeSize - 16) / itemSize
	upperItems = leafItems * itemSize / (itemSize + 4) // each has a count too
	chunkNodes = chunkSize / nodeSize
)

// node is a node of an order. The items of a leaf are entries. The items of an upper node are
// the nodes below, each with a lower bound of its entries; the bound of the first is not used.
// An upper node has fewer items, followed by their counts.
type node struct {
	n          uint32
	leaf       bool
	prev, next uint32 // leaves only; 0: none
	items      [leafItems]item
}

// counts returns how many entries are below each item of an upper node.
func (d *node) counts() *[upperItems]uint32 {
	return (*[upperItems]uint32)(unsafe.Pointer(&d.items[upperItems]))
}

// room returns the most items that a node may have.
func (d *node) room() int {
	if d.leaf {
		return leafItems
	}
	return upperItems
}

// sum returns how many entries are in a node and below it.
func (d *node) sum() uint32 {
	if d.leaf {
		return d.n
	}
	return d.sumTo(int(d.n))
}

// sumTo returns how many entries are below the first i items of an upper node.
func (d *node) sumTo(i int) (sum uint32) {
	for _, n := range d.counts()[:i] {
		sum += n
	}
	return sum
}

// search returns the index of the first item that is not less than it.
func (d *node) search(it *item) int {
	low, high := 0, int(d.n)
	for low < high {
		if m := (low + high) / 2; d.items[m].less(it) {
			low = m + 1
		} else {
			high = m
		}
	}
	return low
}

// below returns the index of the node below in which an item belongs.
func (d *node) below(it *item) int {
	low, high := 1, int(d.n) // the first that is greater
	for low < high {
		if m := (low + high) / 2; it.less(&d.items[m]) {
			high = m
		} else {
			low = m + 1
		}
	}
	return low - 1
}

// insert puts an item at i. count is how many entries are below it, in an upper node.
func (d *node) insert(i int, it item, count uint32) {
	copy(d.items[i+1:d.n+1], d.items[i:d.n])
	d.items[i] = it
	if !d.leaf {
		c := d.counts()
		copy(c[i+1:d.n+1], c[i:d.n])
		c[i] = count
	}
	d.n++
}

func (d *node) remove(i int) {
	copy(d.items[i:], d.items[i+1:d.n])
	if !d.leaf {
		c := d.counts()
		copy(c[i:], c[i+1:d.n])
	}
	d.n--
}

// give moves the items from i on to the end of another node of the same level.
func (d *node) give(i int, to *node) {
	if !d.leaf {
		copy(to.counts()[to.n:], d.counts()[i:d.n])
	}
	to.n += uint32(copy(to.items[to.n:], d.items[i:d.n]))
	d.n = uint32(i)
}
