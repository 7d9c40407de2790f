package sstable

import (
	"errors"
	"math/bits"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Merged is an sstable made from others, the sources, which stay as they are. It knows where
// each entry went. That takes a quarter of a byte for each entry of a source. Each source also
// takes an eighth of a byte for each entry of the new sstable.
//
//	m, err := sstable.Merge(fs, dir, number, cfg, sources)
//	m.CatchUp()                       // without a lock, so that little is left
//	mu.Lock()                         // under which Kill is called
//	m.CatchUp()
//	… replace the sources by m.Run, in the manifest too …
//	mu.Unlock()
type Merged struct {
	// Run is the new sstable.
	Run *Table

	sources []source
}

// source is an sstable that was merged.
type source struct {
	live    *Live
	copied  ranks    // the positions of entries that were copied
	into    ranks    // the positions in the new sstable of entries from here
	seen    []uint32 // live entries of each group when CatchUp last looked
	applied []uint64 // deletions that were taken over
}

// Merge copies the live entries of some sstables, in order, to a new one. The sstables stay
// open, and their entries may be deleted meanwhile. However many sstables there are, only one
// long value is in memory at a time. If one was closed before it was read, Merge returns
// ErrClosed.
func Merge(fs vfs.FS, dir string, number uint64, cfg *Config, sources []*Table) (*Merged, error) {
	for _, r := range sources {
		if !r.hold() {
			return nil, ErrClosed
		}
		defer func() { _ = r.release() }() // a file that cannot be removed is swept later
	}
	m := &Merged{sources: make([]source, len(sources))}
	total := 0
	for i, r := range sources {
		s := &m.sources[i]
		s.live, s.copied, s.seen, s.applied = r.Live, newRanks(r.n), make([]uint32, len(r.left)), make([]uint64, len(r.dead))
		for g := range r.left {
			s.seen[g] = r.left[g].Load()
			total += int(s.seen[g])
		}
	}
	if total > MaxEntries {
		return nil, ErrFull
	}
	w, err := Create(fs, dir, number, cfg)
	if err != nil {
		return nil, err
	}
	if err = m.copy(w, sources, uint32(total)); err == nil {
		var keys, ids []stream
		most := uint64(0) // keys
		for i, r := range sources {
			most += r.footer.keys
			keys = append(keys, m.moved(i, r.items(&r.keys), &w.out))
			ids = append(ids, m.moved(i, r.items(&r.ids), &w.out))
		}
		most = min(most, uint64(w.n))
		m.Run, err = w.finish(newFilter(int(most)), keys, ids)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return m, nil
}

// copy copies the entries and notes where each goes; there are total at most.
func (m *Merged) copy(w *Writer, sources []*Table, total uint32) (err error) {
	var heads []head // a heap
	before := func(a, b *head) bool { return a.entry.Compare(b.entry.Place) < 0 }
	var long buffer // for long entries, one at a time
	defer func() {
		for _, h := range heads {
			err = errors.Join(err, h.Close())
		}
	}()
	for i, r := range sources {
		m.sources[i].into = newRanks(total)
		s := r.Scan(0, r.n).Heads(0)
		if s.Next() {
			heads = append(heads, head{s, i})
		} else if err := errors.Join(s.Err(), s.Close()); err != nil {
			return err
		}
	}
	heapify(heads, before)
	for len(heads) > 0 {
		h := heads[0]
		read, err := h.whole(&long)
		if err != nil {
			return err
		}
		pos, err := w.add(h.entry.Place, h.entry.Value)
		if err != nil {
			return err
		}
		m.sources[h.source].copied.add(h.entry.Pos)
		m.sources[h.source].into.add(pos)
		if !h.Next() {
			last := len(heads) - 1
			heads[0], heads = heads[last], heads[:last]
			err = errors.Join(h.Err(), h.Close())
		}
		siftDown(heads, 0, before)
		if err == nil {
			err = w.out.tick(read + h.read)
		}
		if err != nil {
			return err
		}
	}
	for i := range m.sources {
		m.sources[i].copied.seal()
		m.sources[i].into.seal()
	}
	return nil
}

// moved returns a stream of the items with copied entries, with their new positions.
func (m *Merged) moved(i int, next stream, o *out) stream {
	return func() (it item, ok bool, err error) {
		for {
			if it, ok, err = next(); err != nil || !ok {
				return it, ok, err
			}
			if pos, ok := m.Locate(i, it.pos); ok {
				it.pos = pos
				return it, true, nil
			}
			if err := o.tick(0); err != nil {
				return it, false, err
			}
		}
	}
}

// Locate returns where the entry at a position of the i-th source is now. ok is false if it
// had been deleted and was not copied.
func (m *Merged) Locate(i int, pos uint32) (now uint32, ok bool) {
	s := &m.sources[i]
	if pos >= s.live.n || !s.copied.has(pos) {
		return 0, false
	}
	return s.into.at(s.copied.below(pos)), true
}

// CatchUp deletes from the new sstable the entries that were deleted from the sources since,
// and returns how many. It looks only at groups in which an entry was deleted since the last
// call, and there only at new deletions.
func (m *Merged) CatchUp() (n int) {
	for i := range m.sources {
		s := &m.sources[i]
		for g := range s.seen {
			left := s.live.left[g].Load()
			if left == s.seen[g] {
				continue
			}
			s.seen[g] = left
			from, words := g*int(s.live.group), int(s.live.group)
			for w := from; w < min(from+words, len(s.live.dead)); w++ {
				died := s.live.word(uint32(w)) & s.copied.words[w] &^ s.applied[w]
				for s.applied[w] |= died; died != 0; died &= died - 1 {
					pos, _ := m.Locate(i, uint32(w*64+bits.TrailingZeros64(died)))
					if m.Run.Kill(pos) {
						n++
					}
				}
			}
		}
	}
	return n
}

// head is the scan of a source that is being copied, at the next entry to copy.
type head struct {
	*Scan
	source int
}
