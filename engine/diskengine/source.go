package diskengine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// source is an open sstable. Its fields are guarded by store.mu, except the sstable itself,
// and deletions, which is the compactor's.
type source struct {
	*sstable.Table
	area      memtable.Area
	since     uint64    // the flush after which all of it was in sstables; 1: it was when the store was opened
	deletions uint64    // the number of its deletion bitmaps in the manifest; 0: none
	dirty     bool      // an entry was deleted since the deletion bitmap was written
	rests     time.Time // until when it is not merged, since it cannot be read

	// Where the sstable has been merged into another one:
	merged *sstable.Merged
	nth    int // of its sources
	into   *source
}

// sources is the set of sstables of each area. It is never changed, only replaced.
type sources struct {
	of      [memtable.Finished + 1][]*source // by their numbers, the newest last
	filters [memtable.Finished + 1]sstable.Filters
	latest  uint64 // the largest since of these sstables and of all before them
}

// mayHold reports whether an sstable of a flush after the given one may have a key; 0: any
// sstable.
func (s *sources) mayHold(k keyAt, after uint64) bool {
	if after == 0 {
		return s.filters[k.area].MayHold(k.key)
	}
	return after < s.latest && slices.ContainsFunc(s.of[k.area], func(src *source) bool { return src.since > after && src.MayHold(k.key) })
}

// all returns all sstables by their numbers.
func (s *sources) all() (all []*source) {
	for _, list := range s.of {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *source) int { return cmp.Compare(a.Number(), b.Number()) })
	return all
}

// byNumber finds an sstable by its number; nil: there is none.
func (s *sources) byNumber(number uint64) *source {
	for _, list := range s.of {
		at, ok := slices.BinarySearchFunc(list, number, func(src *source, n uint64) int { return cmp.Compare(src.Number(), n) })
		if ok {
			return list[at]
		}
	}
	return nil
}

// with returns the set with more and without less.
func (s *sources) with(more, less []*source) *sources {
	n := &sources{latest: s.latest}
	for a, list := range s.of {
		for _, src := range list {
			if !slices.Contains(less, src) {
				n.of[a] = append(n.of[a], src)
			}
		}
	}
	for _, src := range more {
		if slices.Contains(less, src) {
			continue
		}
		n.latest = max(n.latest, src.since)
		list := append(n.of[src.area], src)
		slices.SortFunc(list, func(a, b *source) int { return cmp.Compare(a.Number(), b.Number()) })
		n.of[src.area] = list
	}
	for a, list := range n.of {
		tables := make([]*sstable.Table, len(list))
		for i, src := range list {
			tables[i] = src.Table
		}
		n.filters[a] = sstable.FiltersOf(tables)
	}
	return n
}

// none reports whether there are no sstables.
func (s *sources) none() bool {
	return len(s.of[memtable.Live]) == 0 && len(s.of[memtable.Finished]) == 0
}

// holders returns where entries with a key are in the sstables of flushes after the given one.
func (s *sources) holders(k keyAt, after uint64) (spots []spot, err error) {
	list := s.of[k.area]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].since <= after || !list[i].MayHold(k.key) {
			continue
		}
		pos, ok, err := list[i].FindKey(k.key)
		if err != nil {
			return nil, err
		}
		if ok {
			spots = append(spots, spot{list[i], pos})
		}
	}
	return spots, nil
}

// find returns where the message or remembered key with an id is; the zero spot: nowhere.
func (s *sources) find(id uint64) (spot, error) {
	for _, list := range s.of {
		for i := len(list) - 1; i >= 0; i-- {
			pos, ok, err := list[i].FindID(id)
			if err != nil && !errors.Is(err, sstable.ErrClosed) {
				return spot{}, err
			}
			if ok {
				return spot{list[i], pos}, nil
			}
		}
	}
	return spot{}, nil
}

// spot is a position in an sstable. The zero spot is nowhere.
type spot struct {
	src *source
	pos uint32
}

// now is where the entry of a spot is now, after merges; the zero spot: it was deleted.
func (s spot) now() spot {
	for s.src != nil && s.src.into != nil {
		pos, ok := s.src.merged.Locate(s.src.nth, s.pos)
		if !ok {
			return spot{}
		}
		s = spot{s.src.into, pos}
	}
	if s.src == nil || !s.src.Alive(s.pos) {
		return spot{}
	}
	return s
}

// record is the spot as the log has it.
func (s spot) record() record.Spot {
	if s.src == nil {
		return record.Spot{}
	}
	return record.Spot{Table: s.src.Number(), At: s.pos}
}

// kill deletes the entry at a spot.
func (s spot) kill() bool {
	s.src.dirty = true
	return s.src.Kill(s.pos)
}

// keyAt is a key in an area of a queue.
type keyAt struct {
	area memtable.Area
	key  sstable.Key
}
