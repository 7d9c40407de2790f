package sstable

import (
	"cmp"
	"sort"
)

// Behind returns a position from which on come all entries that are not before p, after at
// most a block of others. It reads nothing.
func (r *Table) Behind(p Place) uint32 {
	pos, in := r.place(p)
	if in < 0 {
		return pos
	}
	return max(r.queues[r.queueAt(p.Queue)].From, r.blocks[in].first)
}

// Floor returns a time that is not after that of the entry at a position. exact says that it
// is the entry's own time. Floor reads nothing.
func (r *Table) Floor(pos uint32) (at int64, exact bool) {
	q := r.QueueAt(pos)
	if b := r.blocks[r.blockAt(pos)]; b.Queue == q.Queue {
		return b.At, b.first == pos
	}
	return q.MinAt, q.From == pos
}

// Reach returns the end of the block that has the n-th entry from a position on: a caller that
// reads up to there reads whole blocks.
func (r *Table) Reach(pos uint32, n int) uint32 {
	last := min(uint64(pos)+uint64(max(n, 1))-1, uint64(r.n)-1)
	if b := r.blockAt(uint32(last)) + 1; b < len(r.blocks) {
		return r.blocks[b].first
	}
	return r.n
}

// Begin returns the position at which the block of an entry begins.
func (r *Table) Begin(pos uint32) uint32 { return r.blocks[r.blockAt(pos)].first }

// QueueAt returns the part of the queue that has the entry at a position.
func (r *Table) QueueAt(pos uint32) Queue {
	return r.queues[sort.Search(len(r.queues), func(i int) bool { return r.queues[i].To > pos })]
}

// MayHoldID reports whether an id is among those of the entries, from the least to the greatest.
func (r *Table) MayHoldID(id uint64) bool { return r.footer.minID <= id && id <= r.footer.maxID }

// GetEach gives the entries at ascending positions, deleted or not, until each returns false.
// It reads no block twice, and of long values only the first most bytes, if most is not
// negative. The value is valid until each returns.
func (r *Table) GetEach(positions []uint32, most int, each func(Entry) bool) (err error) {
	if !r.hold() {
		return ErrClosed
	}
	defer func() { err = cmp.Or(err, r.release()) }()
	buf := dataBuffers.Get().(*buffer)
	defer func() { buf.leave() }()
	var b block
	for _, pos := range positions {
		if pos >= r.n {
			return ErrNoEntry
		}
		if b.count == 0 || pos < b.first || pos-b.first >= uint32(b.count) {
			if buf.large() {
				buf = new(buffer) // it is not kept
			}
			i := r.blockAt(pos)
			if s := (&Scan{r: r, buf: buf, most: most}); s.cuts(i) {
				cut, err := s.head(i)
				if b = (block{}); err != nil || cut && !each(s.entry) {
					return err
				}
				if cut {
					continue
				}
			}
			if b, err = r.entries(i, buf); err != nil {
				return err
			}
		}
		if !each(b.entry(int(pos - b.first))) {
			return nil
		}
	}
	return nil
}
