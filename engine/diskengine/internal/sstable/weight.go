package sstable

import (
	"sort"
	"sync"
)

// weight is what the last call of Weight found: how many bytes of blocks live entries take.
type weight struct {
	mu     sync.Mutex
	seen   []uint32 // live entries of each group then
	groups []int64  // bytes of each group
	bytes  int64    // bytes of all groups
}

// Weight estimates how many bytes of the file are for live entries: of each block the share
// of its entries that are alive, and of the rest the share of all entries. It looks only at
// groups in which an entry was deleted since the last call.
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

// weigh is how many bytes of blocks the live entries in [from, to) take.
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
