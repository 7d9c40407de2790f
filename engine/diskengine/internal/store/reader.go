package store

import (
	"cmp"
	"errors"
	"maps"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// Reader reads of the sstables what the steps of a call need. A step runs under the lock, and
// the disk must not be read there. If something was not read yet, the reader notes it and
// returns ErrLack. The step then ends, Read reads it without the lock, and the step runs again.
//
// Positions of ids hold for one set of sstables only. Positions of keys stay valid: a key is
// looked up again only in sstables flushed since. So a call with many keys ends even while
// sstables come and go.
type Reader struct {
	st    *Store
	lacks lacks

	set    *Sources
	keys   map[KeyAt]holders
	ids    map[engine.ID]located
	values map[Spot]value
	blocks map[Spot]error // blocks that cannot be read, by their first entries
	loads  map[*Cursor]loaded
	bytes  int // how many the values have
}

// lacks is what must be read from the sstables before a step can run again.
type lacks struct {
	set     *Sources
	keys    []KeyAt
	ids     []engine.ID
	values  []Spot
	heads   []Spot // likewise, but their heads will do
	cursors []reading
}

// holders are the entries with a key, one for each sstable.
type holders struct {
	spots []Spot
	upTo  uint64 // Sources.Latest when they were looked up; 0: they were not
	err   error  // why the key cannot be looked up: an index cannot be read
}

// located is where an entry with an id is, or why that cannot be looked up.
type located struct {
	Spot
	err error
}

// ErrLack says that a step needs something from the disk first. The step has changed nothing
// for the item that needs it.
var ErrLack = errors.New("something is to be read first")

// From step to step, a Reader keeps at most mostFound bytes of values, and mostFoundItems keys,
// ids and values.
const (
	mostFound      = 2 * engine.AnswerBytes
	mostFoundItems = 1 << 16
)

// Reader returns a reader for a call.
func (st *Store) Reader() Reader { return Reader{st: st} }

// Bytes is how many bytes of values the reader keeps.
func (r *Reader) Bytes() int { return r.bytes }

// Trim forgets what was read once it is much. What is still needed is read again.
func (r *Reader) Trim() {
	if r.bytes > mostFound || len(r.values)+len(r.ids)+len(r.keys) > mostFoundItems {
		r.bytes = 0
		clear(r.values)
		clear(r.ids)
		clear(r.keys)
	}
}

// Forget forgets what was read and noted, but not which blocks cannot be read: they may take
// long to fail.
func (r *Reader) Forget() { *r = Reader{st: r.st, blocks: r.blocks} }

// in forgets what holds only for another set of sstables.
func (r *Reader) in(set *Sources) {
	if r.set == set {
		return
	}
	r.set = set
	clear(r.ids)
	maps.DeleteFunc(r.keys, func(_ KeyAt, h holders) bool { return h.err != nil })
}

// Now is Spot.Now. The value that was read there moves along.
func (r *Reader) Now(s Spot) Spot {
	at := s.Now()
	if at != s && at.Src != nil {
		if v, ok := r.values[s]; ok && v.err == nil {
			r.values[at] = v
			delete(r.values, s)
		}
	}
	return at
}

// ByID returns where in the sstables an entry with an id is; the zero spot: nowhere.
func (r *Reader) ByID(id engine.ID) (Spot, error) {
	set := r.st.Tables
	if !set.mayHoldID(uint64(id)) {
		return Spot{}, nil
	}
	r.in(set)
	at, ok := r.ids[id]
	switch {
	case !ok:
		r.lacks.set, r.lacks.ids = set, append(r.lacks.ids, id)
		return Spot{}, ErrLack
	case at.err != nil:
		return Spot{}, at.err
	}
	return at.Now(), nil
}

// ByKey returns where in the sstables entries with a key are now, at most one for each sstable.
// A zero spot means that the entry was deleted. absent is the flush up to which no sstable has
// the key; 0: not known. In areas that share keys several may have a key, also in one sstable.
func (r *Reader) ByKey(k KeyAt, absent uint64) ([]Spot, error) {
	set := r.st.Tables
	r.in(set)
	h := r.keys[k]
	if h.err != nil {
		return nil, h.err
	}
	lives, gone := false, false
	for i, s := range h.spots {
		at := r.Now(s)
		h.spots[i] = at
		lives, gone = lives || at.Src != nil, gone || at.Src == nil
	}
	switch shares := k.Area.Shares(); {
	case shares && gone: // another entry of the same sstable may have the key
		delete(r.keys, k)
	case !shares && lives, !set.MayHold(k, max(h.upTo, absent)):
		return h.spots, nil
	}
	r.Lack(set, k)
	return nil, ErrLack
}

// Lack notes that a key is to be looked up in a set of sstables.
func (r *Reader) Lack(set *Sources, k KeyAt) {
	r.lacks.set, r.lacks.keys = set, append(r.lacks.keys, k)
}

// Read reads what the last step lacked. The lock is not held.
func (r *Reader) Read() error {
	l := r.lacks
	r.lacks = lacks{}
	if l.set != nil {
		r.in(l.set)
	}
	for _, k := range l.keys {
		spots, err := r.readKey(&l, k)
		if err != nil {
			return err
		}
		l.heads = append(l.heads, spots...)
	}
	for _, id := range l.ids {
		at, err := l.set.Find(uint64(id))
		if err != nil && !IsUnreadable(err) {
			return err
		}
		if put(&r.ids, id, located{at, err}); at.Src != nil {
			l.heads = append(l.heads, at)
		}
	}
	for _, c := range l.cursors {
		if err := r.load(&c); err != nil {
			return err
		}
	}
	if err := r.read(l.values, -1); err != nil || len(l.heads) == 0 {
		return err
	}
	return r.read(l.heads, cmp.Or(r.st.cfg.Head, headBytes))
}

// readKey looks a key up in the sstables in which it was not looked up yet, and returns where
// it is there.
func (r *Reader) readKey(l *lacks, k KeyAt) ([]Spot, error) {
	h := r.keys[k]
	spots, err := l.set.Holders(k, h.upTo)
	for errors.Is(err, sstable.ErrClosed) && l.set != r.st.Outer.Load() { // it was merged away
		l.set = r.st.Outer.Load()
		r.in(l.set)
		spots, err = l.set.Holders(k, h.upTo)
	}
	switch {
	case IsUnreadable(err):
		h.err = err
	case err != nil:
		return nil, err
	default:
		h.spots, h.upTo = append(h.spots, spots...), l.set.Latest
	}
	put(&r.keys, k, h)
	return spots, nil
}

// put adds to a map, and makes it if need be: most calls read nothing.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[k] = v
}
