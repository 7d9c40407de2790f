package sstable

import "github.com/parquet-go/parquet-go/bloom"

// filter says which keys are surely not in an sstable. It is the split block Bloom filter of
// Parquet over the first halves of their hashes. A look-up reads one block of 32 bytes, so
// that one in many sstables waits for memory once for each, and for several at a time. An
// index is written in the order of hashes, which fills a filter from start to end. The zero
// filter has no key.
type filter struct{ blocks bloom.SplitBlockFilter }

const (
	// How many bits a filter takes for each key. Of keys that are not there a fresh one lets
	// through one in 1,000, a merged one one in 120. Fresh sstables are many and do not stay
	// long; merged ones have most of the entries.
	freshBits  = 17
	mergedBits = 11
)

// newFilter returns a filter with room for so many keys.
func newFilter(keys int, bitsEach uint) filter {
	return filter{make(bloom.SplitBlockFilter, blocksFor(int64(keys), bitsEach))}
}

func blocksFor(keys int64, bitsEach uint) int64 {
	const each = 8 * bloom.BlockSize
	return (keys*int64(bitsEach) + each - 1) / each
}

// filterBlocks is the most blocks that a filter has in an sstable of so many entries.
func filterBlocks(entries uint32) int { return int(entries/4) + 1 }

// add adds a key. It panics if the filter has no blocks, which the library would not notice.
func (f filter) add(hi uint64) {
	_ = f.blocks[0]
	f.blocks.Insert(hi)
}

// may reports whether a key may be there.
func (f filter) may(hi uint64) bool { return len(f.blocks) > 0 && f.blocks.Check(hi) }

// row appends block i as a row of a table.
func (f filter) row(b []byte, i int) []byte {
	for _, w := range f.blocks[i] {
		b = le.AppendUint32(b, uint32(w))
	}
	return b
}

// appendRow decodes a row and appends its block.
func (f *filter) appendRow(b []byte) {
	var block bloom.Block
	for i := range block {
		block[i] = bloom.Word(le.Uint32(b[4*i:]))
	}
	f.blocks = append(f.blocks, block)
}

// Filters are the filters of some sstables, which are asked together. They are never changed.
type Filters []bloom.SplitBlockFilter

// FiltersOf returns the filters of sstables.
func FiltersOf(tables []*Table) (fs Filters) {
	for _, r := range tables {
		if len(r.filter.blocks) > 0 {
			fs = append(fs, r.filter.blocks)
		}
	}
	return fs
}

// MayHold reports whether any of the sstables may hold a key, as Table.MayHold does.
func (fs Filters) MayHold(key Key) bool {
	hi, _ := key.halves()
	for _, f := range fs {
		if f.Check(hi) {
			return true
		}
	}
	return false
}
