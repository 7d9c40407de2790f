package disktest

import (
	"maps"
	"slices"
)

// inode is a file or a directory. The contents of sectors are never changed once they stand
// in it, so that clones share them; nil reads as zeros and takes up no space.
type inode struct {
	dir  bool
	size int64
	data [][]byte // as it is seen, by sector

	sureSize int64
	sure     [][]byte         // as it is on the disk
	sizes    []int64          // since the last sync
	unsure   map[int][][]byte // what was written to a sector since, in order
	changes  int              // so many are counted in both, also of what was settled
	settled  int              // how often it was

	links, handles int
}

func newInode(dir bool) *inode { return &inode{dir: dir, unsure: make(map[int][][]byte)} }

// put changes what is seen of a sector.
func (n *inode) put(i int, b []byte) {
	n.data = grown(n.data, i)
	n.data[i] = b
	n.unsure[i] = append(n.unsure[i], b)
	n.changes++
}

func (n *inode) setSize(size int64) {
	if size != n.size {
		n.size = size
		n.sizes = append(n.sizes, size)
		n.changes++
	}
}

func grown(s [][]byte, i int) [][]byte {
	if i >= len(s) {
		s = append(s, make([][]byte, i+1-len(s))...)
	}
	return s
}

// settle decides what of the file is on the disk. With a nil Chooser it is all.
func (n *inode) settle(c Chooser, stale func() []byte) {
	if c == nil {
		c = Everything()
	}
	if len(n.sizes) > 0 {
		if k := c.Choose(len(n.sizes) + 1); k > 0 {
			n.sureSize = n.sizes[k-1]
		}
	}
	n.sure = slices.Clone(n.sure) // shared with clones
	for _, i := range slices.Sorted(maps.Keys(n.unsure)) {
		n.sure = grown(n.sure, i)
		versions := n.unsure[i]
		if k := c.Choose(len(versions) + 1); k > 0 {
			n.sure[i] = versions[k-1]
		} else if stale != nil && n.sure[i] == nil && c.Choose(2) == 1 {
			n.sure[i] = stale()
		}
	}
	n.sizes, n.unsure = nil, make(map[int][][]byte)
	n.settled++
}

// mark is how far a file was written when a sync began.
type mark struct {
	changes, settled, sizes int
	unsure                  map[int]int // how many versions of a sector
}

func (n *inode) mark() mark {
	m := mark{n.changes, n.settled, len(n.sizes), make(map[int]int, len(n.unsure))}
	for i, versions := range n.unsure {
		m.unsure[i] = len(versions)
	}
	return m
}

// settleTo has on the disk what was written before a mark.
func (n *inode) settleTo(m mark) {
	if n.settled != m.settled { // another sync did
		return
	}
	if n.changes == m.changes {
		n.settle(nil, nil)
		return
	}
	sizes, unsure := n.sizes[m.sizes:], n.unsure
	n.sizes, n.unsure = n.sizes[:m.sizes], make(map[int][][]byte)
	for i, k := range m.unsure {
		n.unsure[i] = unsure[i][:k]
		if unsure[i] = unsure[i][k:]; len(unsure[i]) == 0 {
			delete(unsure, i)
		}
	}
	n.settle(nil, nil)
	n.sizes, n.unsure = sizes, unsure
}

// revert lets be seen what is on the disk.
func (n *inode) revert(sector int) {
	n.data, n.size = slices.Clone(n.sure), n.sureSize
	n.cut(sector)
}

// cut lets nothing be seen beyond the size.
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

// clone shares the contents of sectors.
func (n *inode) clone() *inode {
	c := *n
	c.data, c.sure, c.sizes = slices.Clone(n.data), slices.Clone(n.sure), slices.Clone(n.sizes)
	c.unsure = make(map[int][][]byte, len(n.unsure))
	for i, v := range n.unsure {
		c.unsure[i] = slices.Clone(v)
	}
	c.handles = 0
	return &c
}

// taken is how many sectors have space.
func (n *inode) taken() (sectors int) {
	for _, b := range n.data {
		if b != nil {
			sectors++
		}
	}
	return sectors
}
