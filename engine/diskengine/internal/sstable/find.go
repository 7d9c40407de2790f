package sstable

import (
	"cmp"
	"errors"
	"slices"
	"sort"
)

// MayHold reports whether an entry with a key may be here, deleted or not, by the filter in
// memory. It is true for all keys that are here, and for about one in 1,000 of the others.
func (r *Table) MayHold(key Key) bool {
	hi, _ := key.halves()
	return r.filter.may(hi)
}

// FindKey returns the position of the live entry with a key; of several the last. It reads a
// block of the index if MayHold is true, and none otherwise.
func (r *Table) FindKey(key Key) (pos uint32, ok bool, err error) {
	if !r.hold() {
		return 0, false, ErrClosed
	}
	if hi, lo := key.halves(); r.filter.may(hi) {
		pos, ok, err = r.find(&r.keys, hi, lo)
	}
	return pos, ok, cmp.Or(err, r.release())
}

// FindID returns the position of the live entry with an id; of several the last.
func (r *Table) FindID(id uint64) (pos uint32, ok bool, err error) {
	if !r.MayHoldID(id) {
		return 0, false, nil
	}
	if !r.hold() {
		return 0, false, ErrClosed
	}
	pos, ok, err = r.find(&r.ids, id, 0)
	return pos, ok, cmp.Or(err, r.release())
}

// IDsIn gives the ids of the entries in [from, to), deleted or not, even of damaged blocks. It
// reads the whole index of ids.
func (r *Table) IDsIn(from, to uint32, each func(pos uint32, id uint64)) (err error) {
	if !r.hold() {
		return ErrClosed
	}
	defer func() { err = cmp.Or(err, r.release()) }()
	for next := r.items(&r.ids); ; {
		i, ok, err := next()
		if err != nil || !ok {
			return err
		}
		if from <= i.pos && i.pos < to {
			each(i.pos, i.hi)
		}
	}
}

// Queue returns the part that a queue has; ok is false if it has none.
func (r *Table) Queue(queue uint32) (q Queue, ok bool) {
	i := r.queueAt(queue)
	if i == len(r.queues) || r.queues[i].Queue != queue {
		return Queue{}, false
	}
	return r.queues[i], true
}

// queueAt is the index of the first queue from a number on.
func (r *Table) queueAt(queue uint32) int {
	return sort.Search(len(r.queues), func(i int) bool { return r.queues[i].Queue >= queue })
}

// Search returns for some places, in ascending order, the position of the first entry, deleted or
// not, that is not before; Len if there is none. It reads no block twice, and none for the bounds
// of a queue. In a damaged block the position is that of Behind, and damage is the error.
func (r *Table) Search(places ...Place) (at []uint32, damage, err error) {
	at = make([]uint32, len(places))
	var buf *buffer
	var b block
	read := -1
	for i, p := range places {
		pos, in := r.place(p)
		if at[i] = pos; in < 0 {
			continue
		}
		if buf == nil {
			if !r.hold() {
				return nil, nil, ErrClosed
			}
			defer func() { err = cmp.Or(err, r.release()) }()
			buf = dataBuffers.Get().(*buffer)
			defer func() { buf.leave() }()
		}
		if in != read {
			if buf.large() {
				buf = new(buffer) // it is not kept
			}
			if b, err = r.entries(in, buf); errors.Is(err, ErrDamaged) {
				damage, err, read = err, nil, -1
				at[i] = r.Behind(p)
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			read = in
		}
		at[i] = b.first + uint32(b.search(p))
	}
	return at, damage, nil
}

// place returns the position of the first entry that is not before p. If a block must be read
// for that, in is the block; otherwise -1.
func (r *Table) place(p Place) (pos uint32, in int) {
	i := r.queueAt(p.Queue)
	if i == len(r.queues) {
		return r.n, -1
	}
	switch q := r.queues[i]; {
	case q.Queue > p.Queue, p.At < q.MinAt, p.At == q.MinAt && p.ID == 0:
		return q.From, -1
	case p.At > q.MaxAt:
		return q.To, -1
	}
	in = sort.Search(len(r.blocks), func(i int) bool { return r.blocks[i].Compare(p) >= 0 }) - 1
	if in >= 0 && r.alone(in) {
		return r.blocks[in].first + 1, -1
	}
	return 0, in
}

// alone reports whether block i has only one entry, as one with a long value: its place is in
// memory.
func (r *Table) alone(i int) bool {
	if i+1 < len(r.blocks) {
		return r.blocks[i+1].first == r.blocks[i].first+1
	}
	return r.n == r.blocks[i].first+1
}

// Get returns the entry at a position, deleted or not.
func (r *Table) Get(pos uint32) (e Entry, err error) {
	err = r.GetEach([]uint32{pos}, -1, func(at Entry) bool {
		e = at
		e.Value = slices.Clone(at.Value)
		return true
	})
	return e, err
}

// blockAt is the block that a position is in.
func (r *Table) blockAt(pos uint32) int {
	return sort.Search(len(r.blocks), func(i int) bool { return r.blocks[i].first > pos }) - 1
}
