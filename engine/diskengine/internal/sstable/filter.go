package sstable

import "github.com/parquet-go/parquet-go/bloom"

// filter says which keys are surely not in an sstable: the split block Bloom filter of Parquet over the
// first halves of their hashes. All that is asked of it for a key is in one block of 32 bytes, so
// a look-up in many sstables waits for memory once for each, and for several at a time. An index is written
// in the order of hashes, and a filter with it from its start to its end. The zero one has nothing.
type filter struct{ blocks bloom.SplitBlockFilter }

const (
	// How many bits a filter takes for each key. Of those that are not there it lets through one in
	// 1,000, and one in 120. Sstables that come out of memory are many and do not stay long; merged ones
	// have most of the entries.
	freshBits  = 17
	mergedBits = 11
)

// newFilter returns one for so many keys at most.
func newFilter(keys int, bitsEach uint) filter {
	return filter{make(bloom.SplitBlockFilter, blocksFor(int64(keys), bitsEach))}
}

func blocksFor(keys int64, bitsEach uint) int64 {
	const each = 8 * bloom.BlockSize
	return (keys*int64(bitsEach) + each - 1) / each
}

// filterBlocks is how many blocks a filter has at most in an sstable of so many entries.
func filterBlocks(entries uint32) int { return int(entries/4) + 1 }

// add adds a key. A filter without blocks has no room for one, which the library does not notice.
func (f filter) add(hi uint64) {
	_ = f.blocks[0]
	f.blocks.Insert(hi)
}

// may reports whether a key may be there.
func (f filter) may(hi uint64) bool { return len(f.blocks) > 0 && f.blocks.Check(hi) }

// row appends block i in the form of a table.
func (f filter) row(b []byte, i int) []byte {
	for _, w := range f.blocks[i] {
		b = le.AppendUint32(b, uint32(w))
	}
	return b
}

// appendRow reads one.
func (f *filter) appendRow(b []byte) {
	var block bloom.Block
	for i := range block {
		block[i] = bloom.Word(le.Uint32(b[4*i:]))
	}
	f.blocks = append(f.blocks, block)
}

// Filters are those of some sstables, which are asked together. They are never changed.
type Filters []bloom.SplitBlockFilter

// FiltersOf returns those of sstables.
func FiltersOf(tables []*Table) (fs Filters) {
	for _, r := range tables {
		if len(r.filter.blocks) > 0 {
			fs = append(fs, r.filter.blocks)
		}
	}
	return fs
}

// MayHold reports whether MayHold of any of the sstables does.
func (fs Filters) MayHold(key Key) bool {
	hi, _ := key.halves()
	for _, f := range fs {
		if f.Check(hi) {
			return true
		}
	}
	return false
}
