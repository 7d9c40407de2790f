package run

import "sort"

// block is a block of entries: their heads, one behind the other, then their values.
type block struct {
	first  uint32 // position
	count  int
	heads  []byte
	values []byte
}

// appendHead appends the head of an entry whose value ends at end in the values of its block.
func appendHead(b []byte, p Place, end int) []byte {
	b = le.AppendUint32(b, p.Queue)
	b = le.AppendUint32(b, uint32(end))
	b = le.AppendUint64(b, uint64(p.At))
	return le.AppendUint64(b, p.ID)
}

// decodeEntries reads a block, and reports whether all in it can be read without harm.
func decodeEntries(payload []byte, count int) (b block, ok bool) {
	if count <= 0 || uint64(count)*entryHead > uint64(len(payload)) {
		return b, false
	}
	b = block{count: count, heads: payload[:count*entryHead], values: payload[count*entryHead:]}
	end := 0
	for i := range count {
		next := b.end(i)
		if next < end || next > len(b.values) {
			return b, false
		}
		end = next
	}
	return b, end == len(b.values)
}

func (b *block) end(i int) int { return int(le.Uint32(b.heads[i*entryHead+4:])) }

func (b *block) place(i int) Place {
	h := b.heads[i*entryHead:][:entryHead]
	return Place{Queue: le.Uint32(h), At: int64(le.Uint64(h[8:])), ID: le.Uint64(h[16:])}
}

func (b *block) value(i int) []byte {
	from := 0
	if i > 0 {
		from = b.end(i - 1)
	}
	return b.values[from:b.end(i):b.end(i)]
}

func (b *block) entry(i int) Entry {
	return Entry{Place: b.place(i), Pos: b.first + uint32(i), Value: b.value(i)}
}

// search returns the first entry that does not stand before p.
func (b *block) search(p Place) int {
	return sort.Search(b.count, func(i int) bool { return b.place(i).Compare(p) >= 0 })
}

// blockRef is a line of the table of blocks: 32 bytes in memory.
type blockRef struct {
	off   int64
	first uint32 // position
	Place        // of the first entry
}
