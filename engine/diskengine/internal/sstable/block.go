package sstable

import (
	"encoding/binary"
	"sort"
)

// block is a decoded block of entries. It is valid as long as its buffer.
type block struct {
	first  uint32 // position
	count  int
	places []Place
	ends   []uint32 // where the value of each ends in values
	values []byte
}

// columns are the heads of the entries of a block that is being filled. Numbers of one kind
// are together, and each is the difference to that of the entry before, so that it is short.
type columns struct {
	lengths, queues, times, ids []byte
	last                        Place
}

// mostHead is the most bytes of the head of an entry.
const mostHead = 2*binary.MaxVarintLen32 + 2*binary.MaxVarintLen64

// leastHead is the least bytes of the head of an entry: one in each column.
const leastHead = 4

// add appends the head of an entry, which must not come before the last one.
func (c *columns) add(p Place, length int) {
	c.lengths = binary.AppendUvarint(c.lengths, uint64(length))
	c.queues = binary.AppendUvarint(c.queues, uint64(p.Queue-c.last.Queue))
	c.times = binary.AppendVarint(c.times, p.At-c.last.At) // modulo 2⁶⁴, and so are ids
	c.ids = binary.AppendVarint(c.ids, int64(p.ID-c.last.ID))
	c.last = p
}

func (c *columns) size() int { return len(c.lengths) + len(c.queues) + len(c.times) + len(c.ids) }

func (c *columns) reset() {
	*c = columns{lengths: c.lengths[:0], queues: c.queues[:0], times: c.times[:0], ids: c.ids[:0]}
}

// append appends the columns to b, as a block has them.
func (c *columns) append(b []byte) []byte {
	b = append(append(b, c.lengths...), c.queues...)
	return append(append(b, c.times...), c.ids...)
}

// decodeEntries decodes a block; ok is false if it is malformed.
func decodeEntries(payload []byte, count int, buf *buffer) (b block, ok bool) {
	if count <= 0 || uint64(count)*leastHead > uint64(len(payload)) {
		return b, false
	}
	b = block{count: count, places: buf.placesFor(count), ends: buf.endsFor(count)}
	rest, end := payload, uint64(0)
	uvarint := func() (v uint64) {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			rest, ok = nil, false
			return 0
		}
		rest = rest[n:]
		return v
	}
	varint := func() int64 {
		v := uvarint()
		return int64(v>>1) ^ -int64(v&1)
	}
	ok = true
	for i := range b.ends {
		v := uvarint()
		if end += v; v > MaxValue || end > uint64(len(payload)) {
			return b, false
		}
		b.ends[i] = uint32(end)
	}
	queue := uint64(0)
	for i := range b.places {
		v := uvarint()
		if queue += v; v > maxQueue || queue > maxQueue {
			return b, false
		}
		b.places[i].Queue = uint32(queue)
	}
	last := Place{}
	for i := range b.places {
		last.At += varint()
		b.places[i].At = last.At
	}
	for i := range b.places {
		last.ID += uint64(varint())
		b.places[i].ID = last.ID
	}
	b.values = rest
	return b, ok && end == uint64(len(rest))
}

const maxQueue = 1<<32 - 1

func (b *block) place(i int) Place { return b.places[i] }

func (b *block) value(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = b.ends[i-1]
	}
	return b.values[from:b.ends[i]:b.ends[i]]
}

func (b *block) entry(i int) Entry {
	return Entry{Place: b.place(i), Pos: b.first + uint32(i), Value: b.value(i)}
}

// search returns the first entry that is not before p.
func (b *block) search(p Place) int {
	return sort.Search(b.count, func(i int) bool { return b.place(i).Compare(p) >= 0 })
}

// blockRef is a row of the table of blocks: 32 bytes in memory.
type blockRef struct {
	off   int64
	first uint32 // position
	Place        // of the first entry
}
