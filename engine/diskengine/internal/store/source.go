package store

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Source is an open sstable. Its fields are guarded by Store.Mu, except the sstable itself.
type Source struct {
	*sstable.Table
	Area  memtable.Area
	since uint64    // the flush after which all of it was in sstables; 1: it was when the store was opened
	dirty bool      // an entry was deleted since the manifest took its deletion bitmap
	rests time.Time // until when it is not merged, since it cannot be read

	// Where the sstable has been merged into another one:
	merged *sstable.Merged
	nth    int // of its sources
	into   *Source
}

// Sources is the set of sstables of each area. It is never changed, only replaced.
type Sources struct {
	Of      [memtable.Areas][]*Source // by their numbers, the newest last
	Filters [memtable.Areas]sstable.Filters
	Latest  uint64 // the largest since of these sstables and of all before them
}

// MayHold reports whether an sstable of a flush after the given one may have a key; 0: any
// sstable.
func (s *Sources) MayHold(k KeyAt, after uint64) bool {
	if after == 0 {
		return s.Filters[k.Area].MayHold(k.Key)
	}
	return after < s.Latest && slices.ContainsFunc(s.Of[k.Area], func(src *Source) bool { return src.since > after && src.MayHold(k.Key) })
}

// All returns all sstables by their numbers.
func (s *Sources) All() (all []*Source) {
	for _, list := range s.Of {
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *Source) int { return cmp.Compare(a.Number(), b.Number()) })
	return all
}

// ByNumber finds an sstable by its number; nil: there is none.
func (s *Sources) ByNumber(number uint64) *Source {
	for _, list := range s.Of {
		at, ok := slices.BinarySearchFunc(list, number, func(src *Source, n uint64) int { return cmp.Compare(src.Number(), n) })
		if ok {
			return list[at]
		}
	}
	return nil
}

// with returns the set with more and without less.
func (s *Sources) with(more, less []*Source) *Sources {
	n := &Sources{Latest: s.Latest}
	for a, list := range s.Of {
		for _, src := range list {
			if !slices.Contains(less, src) {
				n.Of[a] = append(n.Of[a], src)
			}
		}
	}
	for _, src := range more {
		if slices.Contains(less, src) {
			continue
		}
		n.Latest = max(n.Latest, src.since)
		list := append(n.Of[src.Area], src)
		slices.SortFunc(list, func(a, b *Source) int { return cmp.Compare(a.Number(), b.Number()) })
		n.Of[src.Area] = list
	}
	for a, list := range n.Of {
		tables := make([]*sstable.Table, len(list))
		for i, src := range list {
			tables[i] = src.Table
		}
		n.Filters[a] = sstable.FiltersOf(tables)
	}
	return n
}

// None reports whether there are no sstables.
func (s *Sources) None() bool {
	return len(s.Of[memtable.Live]) == 0 && len(s.Of[memtable.Finished]) == 0
}

// Holders returns where entries with a key are in the sstables of flushes after the given one.
func (s *Sources) Holders(k KeyAt, after uint64) (spots []Spot, err error) {
	list := s.Of[k.Area]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].since <= after || !list[i].MayHold(k.Key) {
			continue
		}
		pos, ok, err := list[i].FindKey(k.Key)
		if err != nil {
			return nil, err
		}
		if ok {
			spots = append(spots, Spot{list[i], pos})
		}
	}
	return spots, nil
}

// Find returns where the message or remembered key with an id is; the zero spot: nowhere.
func (s *Sources) Find(id uint64) (Spot, error) {
	for _, list := range s.Of {
		for i := len(list) - 1; i >= 0; i-- {
			pos, ok, err := list[i].FindID(id)
			if err != nil && !errors.Is(err, sstable.ErrClosed) {
				return Spot{}, err
			}
			if ok {
				return Spot{list[i], pos}, nil
			}
		}
	}
	return Spot{}, nil
}

// mayHoldID reports whether any sstable may have an id.
func (s *Sources) mayHoldID(id uint64) bool {
	for _, list := range s.Of {
		if slices.ContainsFunc(list, func(src *Source) bool { return src.MayHoldID(id) }) {
			return true
		}
	}
	return false
}

// Spot is a position in an sstable. The zero spot is nowhere.
type Spot struct {
	Src *Source
	Pos uint32
}

// Now is where the entry of a spot is now, after merges; the zero spot: it was deleted.
func (s Spot) Now() Spot {
	for s.Src != nil && s.Src.into != nil {
		pos, ok := s.Src.merged.Locate(s.Src.nth, s.Pos)
		if !ok {
			return Spot{}
		}
		s = Spot{s.Src.into, pos}
	}
	if s.Src == nil || !s.Src.Alive(s.Pos) {
		return Spot{}
	}
	return s
}

// Record is the spot as the log has it.
func (s Spot) Record() record.Spot {
	if s.Src == nil {
		return record.Spot{}
	}
	return record.Spot{Table: s.Src.Number(), At: s.Pos}
}

// Kill deletes the entry at a spot.
func (s Spot) Kill() bool {
	s.Src.dirty = true
	return s.Src.Kill(s.Pos)
}

// KeyAt is a key in an area of a queue.
type KeyAt struct {
	Area memtable.Area
	Key  sstable.Key
}
