package disktest

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Flip flips the bits of mask in one byte of a file, on the disk and as it is seen. It panics
// if there is no such byte.
func (d *Disk) Flip(name string, off int64, mask byte) {
	d.spoil(name, off, 1, func(b []byte) { b[0] ^= mask })
}

// Zero makes n bytes of a file zeros, on the disk and as they are seen. It panics if there are
// no such bytes.
func (d *Disk) Zero(name string, off, n int64) {
	d.spoil(name, off, int(n), func(b []byte) { clear(b) })
}

// Cut sets the size of a file, on the disk and as it is seen. Added bytes are zeros and take no
// space.
func (d *Disk) Cut(name string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names.seen[filepath.Clean(name)]
	n.size = size
	d.take(-n.taken())
	n.cut(d.cfg.Sector)
	d.take(n.taken())
	n.sure, n.sureSize, n.sizes, n.unsure = slices.Clone(n.data), size, nil, nil
}

func (d *Disk) spoil(name string, off int64, n int, fn func(b []byte)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := d.names.seen[filepath.Clean(name)]
	if node == nil || node.dir || off < 0 || off+int64(n) > node.size {
		panic(fmt.Sprintf("disktest: %s has no %d bytes at %d", name, n, off))
	}
	f := &file{disk: d, inode: node}
	f.each(off, n, func(i, from, to, _ int) bool {
		b := make([]byte, d.cfg.Sector)
		if i < len(node.data) {
			copy(b, node.data[i])
		}
		fn(b[from:to])
		node.data, node.sure = grown(node.data, i), grown(node.sure, i)
		if node.data[i] == nil {
			d.take(1)
		}
		node.data[i], node.sure[i] = b, b
		for k := range node.unsure { // which a sync under way counts
			if node.unsure[k].sector == i {
				node.unsure[k].b = b
			}
		}
		return true
	})
	node.sureSize = node.size
	for k := range node.sizes {
		node.sizes[k] = node.size
	}
}
