package disktest

import (
	"cmp"
	"slices"
)

// inode is a file or a directory. The content of a sector is never changed, only replaced, so
// that clones share it; nil reads as zeros and takes no space.
type inode struct {
	dir  bool
	size int64
	data [][]byte // as it is seen, by sector

	sureSize int64
	sure     [][]byte  // as it is on the disk
	sizes    []int64   // since the last sync
	unsure   []version // of sectors since the last sync, in order
	settled  int       // how often settle was called

	links, handles int
}

// version is a content that was written to a sector.
type version struct {
	sector int
	b      []byte
}

// put changes the content of a sector, as it is seen.
func (n *inode) put(i int, b []byte) {
	n.data = grown(n.data, i)
	n.data[i] = b
	n.unsure = append(n.unsure, version{i, b})
}

// fill is put of one content for many sectors in order.
func (n *inode) fill(all []int, b []byte) {
	n.data = grown(n.data, all[len(all)-1])
	n.unsure = slices.Grow(n.unsure, len(all))
	for _, i := range all {
		n.put(i, b)
	}
}

func (n *inode) setSize(size int64) {
	if size != n.size {
		n.size = size
		n.sizes = append(n.sizes, size)
	}
}

// grown returns a slice that has an i-th element.
func grown(s [][]byte, i int) [][]byte {
	if i >= len(s) {
		s = append(s, make([][]byte, i+1-len(s))...)
	}
	return s
}

// settle decides what of the file is on the disk. With a nil Chooser all is.
func (n *inode) settle(c Chooser, stale func() []byte) {
	n.sure = slices.Clone(n.sure) // shared with clones
	if c == nil {
		n.settleAll()
	} else {
		n.settleSome(c, stale)
	}
	n.sizes, n.unsure = nil, nil
	n.settled++
}

func (n *inode) settleAll() {
	if k := len(n.sizes); k > 0 {
		n.sureSize = n.sizes[k-1]
	}
	last := -1
	for _, v := range n.unsure {
		last = max(last, v.sector)
	}
	n.sure = grown(n.sure, last)
	for _, v := range n.unsure {
		n.sure[v.sector] = v.b
	}
}

func (n *inode) settleSome(c Chooser, stale func() []byte) {
	if len(n.sizes) > 0 {
		if k := c.Choose(len(n.sizes) + 1); k > 0 {
			n.sureSize = n.sizes[k-1]
		}
	}
	all := slices.Clone(n.unsure)
	slices.SortStableFunc(all, func(a, b version) int { return cmp.Compare(a.sector, b.sector) })
	for to := 0; len(all) > 0; all = all[to:] {
		i := all[0].sector
		for to = 1; to < len(all) && all[to].sector == i; to++ {
		}
		n.sure = grown(n.sure, i)
		if k := c.Choose(to + 1); k > 0 {
			n.sure[i] = all[k-1].b
		} else if stale != nil && n.sure[i] == nil && c.Choose(2) == 1 {
			n.sure[i] = stale()
		}
	}
}

// mark is the state of a file when a sync began.
type mark struct{ settled, sizes, unsure int }

func (n *inode) mark() mark { return mark{n.settled, len(n.sizes), len(n.unsure)} }

// settleTo makes all that was written before a mark sure.
func (n *inode) settleTo(m mark) {
	if n.settled != m.settled { // another sync did
		return
	}
	sizes, unsure := n.sizes[m.sizes:], n.unsure[m.unsure:]
	n.sizes, n.unsure = n.sizes[:m.sizes], n.unsure[:m.unsure]
	n.settle(nil, nil)
	n.sizes, n.unsure = sizes, unsure
}

// revert makes the file look as it is on the disk.
func (n *inode) revert(sector int) {
	n.data, n.size = slices.Clone(n.sure), n.sureSize
	n.cut(sector)
}

// cut removes what is beyond the size.
func (n *inode) cut(sector int) {
	whole := int(n.size / int64(sector))
	rest := int(n.size % int64(sector))
	if whole < len(n.data) && rest > 0 && n.data[whole] != nil {
		b := make([]byte, sector)
		copy(b, n.data[whole][:rest])
		n.data[whole] = b
		whole++
	} else if rest > 0 {
		whole++
	}
	n.data = n.data[:min(whole, len(n.data))]
}

// clone returns a copy that shares the contents of sectors.
func (n *inode) clone() *inode {
	c := *n
	c.data, c.sure, c.sizes, c.unsure = slices.Clone(n.data), slices.Clone(n.sure), slices.Clone(n.sizes), slices.Clone(n.unsure)
	c.handles = 0
	return &c
}

// taken is how many sectors take space.
func (n *inode) taken() (sectors int) {
	for _, b := range n.data {
		if b != nil {
			sectors++
		}
	}
	return sectors
}
