package diskengine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// found is what a call has read of the sstables. Positions of ids hold for one set of sstables
// only. Positions of keys stay valid: a key is looked up again only in sstables flushed since.
// So a call with many keys ends even while sstables come and go.
type found struct {
	set    *store.Sources
	keys   map[store.KeyAt]holders
	ids    map[engine.ID]store.Spot
	values map[store.Spot]sstable.Entry
	broken map[store.Spot]error  // values that cannot be read
	blocks map[store.Spot]error  // blocks that cannot be read, by their first entries
	badKey map[store.KeyAt]error // keys and ids that cannot be looked up, since an index cannot be read
	badID  map[engine.ID]error
	loads  map[*cursor]loaded
	bytes  int // how many the values have
}

// holders are the entries with a key, one for each sstable.
type holders struct {
	spots []store.Spot
	upTo  uint64 // Sources.Latest when they were looked up; 0: they were not
}

// trim forgets what was found once it is much. What is still needed is read again.
func (f *found) trim() {
	if f.bytes > mostFound || len(f.values)+len(f.ids)+len(f.keys) > mostFoundItems {
		f.bytes = 0
		clear(f.values)
		clear(f.ids)
		clear(f.keys)
	}
}

// in forgets what holds only for another set of sstables.
func (f *found) in(set *store.Sources) {
	if f.set != set {
		f.set = set
		clear(f.ids)
		clear(f.badKey)
		clear(f.badID)
	}
}

// now is Spot.Now. The value that was read there moves along.
func (f *found) now(s store.Spot) store.Spot {
	at := s.Now()
	if at != s && at.Src != nil {
		if v, ok := f.values[s]; ok {
			f.values[at] = v
			delete(f.values, s)
		}
	}
	return at
}

// readValues reads values up to engine.AnswerBytes, which the last one may exceed. Values may
// be large, so it reads one, then two, then four and so on, each time in the order of the
// sstable. A block is thus read a few times at most.
func (f *found) readValues(spots []store.Spot) error {
	if len(f.blocks) > 0 {
		spots = slices.DeleteFunc(slices.Clone(spots), func(at store.Spot) bool { return f.readError(at) != nil })
	}
	if len(spots) == 0 {
		return nil
	}
	if f.values == nil {
		f.values, f.broken = make(map[store.Spot]sstable.Entry), make(map[store.Spot]error)
	}
	bytes := 0
	for n := 1; len(spots) > 0 && bytes < engine.AnswerBytes; n = min(2*n, store.StepItems) {
		some := spots[:min(len(spots), n)]
		spots = spots[len(some):]
		some = slices.Clone(some)
		slices.SortFunc(some, func(a, b store.Spot) int {
			return cmp.Or(cmp.Compare(a.Src.Number(), b.Src.Number()), cmp.Compare(a.Pos, b.Pos))
		})
		some = slices.Compact(some)
		for len(some) > 0 && bytes < engine.AnswerBytes {
			n := 1
			for n < len(some) && some[n].Src == some[0].Src {
				n++
			}
			read, err := f.readOf(some[0].Src, some[:n], engine.AnswerBytes-bytes)
			if err != nil {
				return err
			}
			bytes += read
			some = some[n:]
		}
	}
	return nil
}

// readOf reads values of one sstable until they have most bytes.
func (f *found) readOf(src *store.Source, spots []store.Spot, most int) (bytes int, err error) {
	defer func() { f.bytes += bytes }()
	for len(spots) > 0 {
		positions := make([]uint32, len(spots))
		for i, s := range spots {
			positions[i] = s.Pos
		}
		done := 0
		err := src.GetEach(positions, func(e sstable.Entry) bool {
			at := spots[done]
			done++
			if err := checkValue(src.Area, e); err != nil {
				f.broken[at] = &unreadableError{src.Misread(e.Pos, err), at}
				return true
			}
			e.Value = slices.Clone(e.Value)
			f.values[at] = e
			bytes += len(e.Value)
			return bytes < most
		})
		switch {
		case err == nil, errors.Is(err, sstable.ErrClosed): // it was merged away: the next step knows
			return bytes, nil
		case !isUnreadable(err), done == len(spots): // all were read: the error is of closing a merged sstable
			return bytes, err
		}
		if f.blocks == nil {
			f.blocks = make(map[store.Spot]error)
		}
		f.blocks[blockOf(spots[done])] = err // not tried again: it may have taken long to fail
		for to := src.Reach(spots[done].Pos, 1); done < len(spots) && spots[done].Pos < to; done++ {
		}
		spots = spots[done:]
	}
	return bytes, nil
}

// blockOf is the first entry of the block that a spot is in.
func blockOf(at store.Spot) store.Spot { return store.Spot{Src: at.Src, Pos: at.Src.Begin(at.Pos)} }

// readError returns why a value cannot be read; nil: it can, or was not tried.
func (f *found) readError(at store.Spot) error {
	if err := f.broken[at]; err != nil || len(f.blocks) == 0 {
		return err
	}
	if err := f.blocks[blockOf(at)]; err != nil {
		return &unreadableError{err, at}
	}
	return nil
}

// cut forgets all but the heads of the contents of live messages with a key, to save memory: a
// call needs more of only a few. Values of at most whole bytes stay.
func (f *found) cut(key sstable.Key, whole int) {
	for _, at := range f.keys[store.KeyAt{Area: memtable.Live, Key: key}].spots {
		v, ok := f.values[at]
		if !ok || len(v.Value) <= whole {
			continue
		}
		_, _, content, err := parse(v)
		if err != nil {
			continue
		}
		head, err := record.HeadOf(content)
		if err != nil {
			continue
		}
		was := len(v.Value)
		v.Value, v.Cut = slices.Clone(v.Value[:was-len(content)+len(head)]), true
		f.values[at] = v
		f.bytes -= was - len(v.Value)
	}
}

// forget forgets a value, so that it is read again.
func (f *found) forget(at store.Spot) {
	f.bytes -= len(f.values[at].Value)
	delete(f.values, at)
}
