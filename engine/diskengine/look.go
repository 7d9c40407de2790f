package diskengine

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// lacks is what must be read from the sstables before a step can run again.
type lacks struct {
	set     *store.Sources
	keys    []store.KeyAt
	ids     []engine.ID
	values  []store.Spot
	cursors []reading
}

// From step to step, a call keeps at most mostFound bytes of values, and mostFoundItems keys,
// ids and values.
const (
	mostFound      = 2 * engine.AnswerBytes
	mostFoundItems = 1 << 16
)

// read reads what the last step lacked. No lock is held.
func (c *call) read() error {
	l := c.lacks
	c.lacks = lacks{}
	return c.withoutLock(func() error { return c.readAll(&l) })
}

func (c *call) readAll(l *lacks) error {
	f := &c.found
	if l.set != nil {
		f.in(l.set)
	}
	for _, k := range l.keys {
		h := f.keys[k]
		spots, err := l.set.Holders(k, h.upTo)
		for errors.Is(err, sstable.ErrClosed) && l.set != c.e.store.Outer.Load() { // it was merged away
			l.set = c.e.store.Outer.Load()
			f.in(l.set)
			spots, err = l.set.Holders(k, h.upTo)
		}
		if isUnreadable(err) {
			if f.badKey == nil {
				f.badKey = make(map[store.KeyAt]error)
			}
			f.badKey[k] = err
			continue
		}
		if err != nil {
			return err
		}
		if f.keys == nil {
			f.keys = make(map[store.KeyAt]holders)
		}
		f.keys[k] = holders{append(h.spots, spots...), l.set.Latest}
		l.values = append(l.values, spots...)
	}
	for _, id := range l.ids {
		at, err := l.set.Find(uint64(id))
		if isUnreadable(err) {
			if f.badID == nil {
				f.badID = make(map[engine.ID]error)
			}
			f.badID[id] = err
			continue
		}
		if err != nil {
			return err
		}
		if f.ids == nil {
			f.ids = make(map[engine.ID]store.Spot)
		}
		if f.ids[id] = at; at.Src != nil {
			l.values = append(l.values, at)
		}
	}
	for _, r := range l.cursors {
		items, to, damage, err := r.load()
		if damage != nil {
			c.e.store.Slog.Error("tarry disk: messages in a damaged block of an sstable cannot be read and are passed over; tarry check --salvage saves the others",
				"dir", c.e.store.Dir, "error", damage)
		}
		if err != nil && !errors.Is(err, sstable.ErrClosed) {
			return err
		}
		if err == nil {
			if f.loads == nil {
				f.loads = make(map[*cursor]loaded)
			}
			f.loads[r.of] = loaded{r.from, to, items}
		}
	}
	return f.readValues(l.values)
}

// lackKey notes that a key is to be looked up.
func (c *call) lackKey(k store.KeyAt) error {
	c.lacks.set = c.e.store.Tables
	c.lacks.keys = append(c.lacks.keys, k)
	return errLack
}

func (c *call) lackID(id engine.ID) error {
	c.lacks.set = c.e.store.Tables
	c.lacks.ids = append(c.lacks.ids, id)
	return errLack
}

func (c *call) lackValue(at store.Spot) error {
	c.lacks.values = append(c.lacks.values, at)
	return errLack
}

// spotOfID returns where in the sstables a message is, if it is in no memtable; the zero spot:
// nowhere.
func (c *call) spotOfID(id engine.ID) (store.Spot, error) {
	e := c.e
	if !e.mayHoldID(id) {
		return store.Spot{}, nil
	}
	c.found.in(e.store.Tables)
	if err := c.found.badID[id]; err != nil {
		return store.Spot{}, err
	}
	at, ok := c.found.ids[id]
	if !ok {
		return store.Spot{}, c.lackID(id)
	}
	return at.Now(), nil
}

// mayHoldID reports whether any sstable may have an id.
func (e *Engine) mayHoldID(id engine.ID) bool {
	for _, list := range e.store.Tables.Of {
		for _, src := range list {
			if uint64(id) <= src.MaxID() {
				return true
			}
		}
	}
	return false
}

// spotsOfKey returns where the entries of an area with a key are now, at most one in each
// sstable. A zero spot means that the entry was deleted.
func (c *call) spotsOfKey(q *queue, area memtable.Area, key []byte, hash *keyLookup) ([]store.Spot, error) {
	e := c.e
	if len(e.store.Tables.Of[area]) == 0 {
		return nil, nil
	}
	if hash.num != q.num {
		*hash = keyLookup{num: q.num, key: e.store.Secret.Key(q.num, string(key))}
	}
	if hash.absent == e.store.Tables.Latest && area != memtable.Dead {
		return nil, nil
	}
	k := store.KeyAt{Area: area, Key: hash.key}
	c.found.in(e.store.Tables)
	if err := c.found.badKey[k]; err != nil {
		return nil, err
	}
	h := c.found.keys[k]
	if area != memtable.Dead {
		h.upTo = max(h.upTo, hash.absent)
	}
	lives, gone := false, false
	for i, s := range h.spots {
		at := c.found.now(s)
		h.spots[i] = at
		lives, gone = lives || at.Src != nil, gone || at.Src == nil
	}
	switch {
	case area == memtable.Dead && gone: // another dead message of the same sstable may have the key
		delete(c.found.keys, k)
		return nil, c.lackKey(k)
	case area != memtable.Dead && lives:
		return h.spots, nil
	case e.store.Tables.MayHold(k, h.upTo):
		return nil, c.lackKey(k)
	}
	return h.spots, nil
}

// valueAt returns the entry at a spot.
func (c *call) valueAt(at store.Spot) (sstable.Entry, error) {
	v, ok := c.found.values[at]
	if !ok {
		if err := c.found.readError(at); err != nil {
			return sstable.Entry{}, err
		}
		return sstable.Entry{}, c.lackValue(at)
	}
	return v, nil
}

// parse decodes the value of an entry of a message in an sstable.
func parse(v sstable.Entry) (key []byte, s record.State, content []byte, err error) {
	key, value, err := record.ParseKeyed(v.Value)
	if err == nil {
		s, content, err = record.ParseValue(value)
	}
	return key, s, content, err
}

// checkValue returns an error if the value of an entry of an sstable cannot be decoded.
func checkValue(a memtable.Area, v sstable.Entry) error {
	if a == memtable.Finished {
		_, value, err := record.ParseKeyed(v.Value)
		if err == nil {
			_, err = record.ParseTrace(value)
		}
		return err
	}
	_, _, content, err := parse(v)
	if err == nil {
		_, err = record.ParseHead(content)
	}
	return err
}
