package sstable

import (
	"sort"
	"sync"
)

// weight is how many bytes of the blocks of entries belong to those that are alive, as far as it was
// last weighed.
type weight struct {
	mu     sync.Mutex
	seen   []uint32 // alive in each group then
	groups []int64  // bytes of each
	bytes  int64    // of all
}

// Weight is about how many bytes of the file are there for entries that are alive: of each block as
// large a share as of its entries, and of the indexes as of all. It looks only at the groups of
// entries in which one died since the last call.
func (r *Table) Weight() int64 {
	w := &r.weight
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen, w.groups = make([]uint32, len(r.left)), make([]int64, len(r.left))
	}
	alive := 0
	for g := range r.left {
		now := r.left[g].Load()
		alive += int(now)
		if now == w.seen[g] {
			continue
		}
		group := 64 * r.group
		bytes := r.weigh(uint32(g)*group, min(r.n, uint32(g+1)*group))
		w.bytes += bytes - w.groups[g]
		w.seen[g], w.groups[g] = now, bytes
	}
	data := r.footer.part(kindData)
	rest := r.Bytes() - (data.end - data.off)
	return w.bytes + int64(float64(rest)*float64(alive)/float64(max(1, r.n)))
}

// weigh is how many bytes of blocks those take that are alive in [from, to).
func (r *Table) weigh(from, to uint32) (bytes int64) {
	i := sort.Search(len(r.blocks), func(i int) bool { return r.blocks[i].first > from }) - 1
	for ; i < len(r.blocks) && r.blocks[i].first < to; i++ {
		first, next := r.blocks[i].first, r.n
		if i+1 < len(r.blocks) {
			next = r.blocks[i+1].first
		}
		alive := r.Count(max(from, first), min(to, next))
		bytes += (r.blockEnd(i) - r.blocks[i].off) * int64(alive) / int64(next-first)
	}
	return bytes
}
