package sstable

// filter says which keys are surely not in an sstable. It is a split block Bloom filter over
// the first halves of their hashes, as Parquet has it. A look-up reads one block of 32 bytes,
// so that one in many sstables waits for memory once for each, and for several at a time. An
// index is written in the order of hashes, which fills a filter from start to end. The zero
// filter has no key.
type filter []filterBlock

// filterBlock is a part of a filter. A key has one bit in each word of one block.
type filterBlock [8]uint32

const (
	filterWidth = 32 // bytes of a block

	// filterBits is how many bits a filter takes for each key. Of keys that are not there it lets
	// through one in 1,000: a push asks all sstables.
	filterBits = 17
)

// filterSalts are Parquet's: each picks another bit of a word for the same key.
var filterSalts = filterBlock{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// newFilter returns a filter with room for so many keys.
func newFilter(keys int) filter { return make(filter, blocksFor(int64(keys))) }

func blocksFor(keys int64) int64 {
	const each = 8 * filterWidth
	return (keys*filterBits + each - 1) / each
}

// filterBlocks is the most blocks that a filter has in an sstable of so many entries.
func filterBlocks(entries uint32) int { return int(entries/4) + 1 }

// keyBits has the bits of a key.
func keyBits(hi uint64) (bits filterBlock) {
	for i, salt := range filterSalts {
		bits[i] = 1 << (uint32(hi) * salt >> 27)
	}
	return bits
}

// block is the block of a key. There must be one.
func (f filter) block(hi uint64) *filterBlock { return &f[(hi>>32)*uint64(len(f))>>32] }

func (f filter) add(hi uint64) {
	b, bits := f.block(hi), keyBits(hi)
	for i := range b {
		b[i] |= bits[i]
	}
}

// has reports whether all bits of a key are set. It does not branch at each word, as a
// processor would guess wrong half of the time.
func (b *filterBlock) has(bits *filterBlock) bool {
	missing := uint32(0)
	for i := range b {
		missing |= bits[i] &^ b[i]
	}
	return missing == 0
}

// may reports whether a key may be there.
func (f filter) may(hi uint64) bool { return Filters{f}.may(hi) }

// row appends block i as a row of a table.
func (f filter) row(b []byte, i int) []byte {
	for _, w := range f[i] {
		b = le.AppendUint32(b, w)
	}
	return b
}

// appendRow decodes a row and appends its block.
func (f *filter) appendRow(b []byte) {
	var block filterBlock
	for i := range block {
		block[i] = le.Uint32(b[4*i:])
	}
	*f = append(*f, block)
}

// Filters are the filters of some sstables, which are asked together. They are never changed.
type Filters []filter

// FiltersOf returns the filters of sstables.
func FiltersOf(tables []*Table) (fs Filters) {
	for _, r := range tables {
		fs = append(fs, r.filter)
	}
	return fs
}

// MayHold reports whether any of the sstables may hold a key, as Table.MayHold does.
func (fs Filters) MayHold(key Key) bool {
	hi, _ := key.halves()
	return fs.may(hi)
}

func (fs Filters) may(hi uint64) bool {
	bits := keyBits(hi)
	for _, f := range fs {
		if len(f) > 0 && f.block(hi).has(&bits) {
			return true
		}
	}
	return false
}
