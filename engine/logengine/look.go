package logengine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/record"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
)

// keyAt is a key in an area of a queue.
type keyAt struct {
	area recent.Area
	key  run.Key
}

// lacks is what a step needs of the runs.
type lacks struct {
	set     *sources
	keys    []keyAt
	ids     []engine.ID
	values  []spot
	cursors []reading
}

// found is what a call has read of the runs. Where keys and ids stand it knows of one set of them
// only.
type found struct {
	set    *sources
	keys   map[keyAt][]spot
	ids    map[engine.ID]spot
	values map[spot]run.Entry
	broken map[spot]error  // values that are damaged
	badKey map[keyAt]error // keys and ids that cannot be looked up, since an index is damaged
	badID  map[engine.ID]error
	loads  map[*cursor]loaded
	bytes  int // of values
}

// mostFound is how many bytes of values, and how many keys, ids and values, a call keeps from step
// to step.
const (
	mostFound      = 2 * engine.AnswerBytes
	mostFoundItems = 1 << 16
)

// trim forgets what was found when it has become much: what is still needed is read again.
func (f *found) trim() {
	if f.bytes > mostFound || len(f.values)+len(f.ids)+len(f.keys) > mostFoundItems {
		f.bytes = 0
		clear(f.values)
		clear(f.ids)
		clear(f.keys)
	}
}

// in forgets what was found in another set of runs.
func (f *found) in(set *sources) {
	if f.set != set {
		f.set = set
		clear(f.keys)
		clear(f.ids)
		clear(f.badKey)
		clear(f.badID)
	}
}

// read reads what the last step lacked. No lock is held.
func (c *call) read() error {
	l := c.lacks
	c.lacks = lacks{}
	return c.apart(func() error { return c.readAll(&l) })
}

func (c *call) readAll(l *lacks) error {
	f := &c.found
	if l.set != nil {
		f.in(l.set)
	}
nextKey:
	for _, k := range l.keys {
		var spots []spot
		list := l.set.of[k.area]
		for i := len(list) - 1; i >= 0; i-- {
			if !list[i].MayHold(k.key) {
				continue
			}
			pos, ok, err := list[i].FindKey(k.key)
			if errors.Is(err, run.ErrDamaged) {
				if f.badKey == nil {
					f.badKey = make(map[keyAt]error)
				}
				f.badKey[k] = err
				continue nextKey
			}
			if err != nil && !errors.Is(err, run.ErrClosed) {
				return err
			}
			if ok {
				spots = append(spots, spot{list[i], pos})
			}
		}
		if f.keys == nil {
			f.keys = make(map[keyAt][]spot)
		}
		f.keys[k] = spots
		l.values = append(l.values, spots...)
	}
	for _, id := range l.ids {
		at, err := l.set.find(uint64(id))
		if errors.Is(err, run.ErrDamaged) {
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
			f.ids = make(map[engine.ID]spot)
		}
		if f.ids[id] = at; at.src != nil {
			l.values = append(l.values, at)
		}
	}
	for _, r := range l.cursors {
		turns, to, damage, err := r.load()
		if damage != nil {
			c.e.slog.Error("tarry disk: messages in a damaged block of a run cannot be read and are passed over; tarry check --repair saves the others",
				"dir", c.e.dir, "error", damage)
		}
		if err != nil && !errors.Is(err, run.ErrClosed) {
			return err
		}
		if err == nil {
			if f.loads == nil {
				f.loads = make(map[*cursor]loaded)
			}
			f.loads[r.of] = loaded{r.from, to, turns}
		}
	}
	return f.readValues(l.values)
}

// find returns where the message with an id lives, or a key is remembered under it.
func (s *sources) find(id uint64) (spot, error) {
	for _, list := range s.of {
		for i := len(list) - 1; i >= 0; i-- {
			pos, ok, err := list[i].FindID(id)
			if err != nil && !errors.Is(err, run.ErrClosed) {
				return spot{}, err
			}
			if ok {
				return spot{list[i], pos}, nil
			}
		}
	}
	return spot{}, nil
}

// readValues reads values up to AnswerBytes and one more, the first in any case. Each block is read
// a few times at most: values are read some at a time, more and more, since they may be large.
func (f *found) readValues(spots []spot) error {
	if len(spots) == 0 {
		return nil
	}
	if f.values == nil {
		f.values, f.broken = make(map[spot]run.Entry), make(map[spot]error)
	}
	bytes := 0
	for n := 1; len(spots) > 0 && bytes < engine.AnswerBytes; n = min(2*n, stepItems) {
		some := spots[:min(len(spots), n)]
		spots = spots[len(some):]
		some = slices.Clone(some)
		slices.SortFunc(some, func(a, b spot) int {
			return cmp.Or(cmp.Compare(a.src.Number(), b.src.Number()), cmp.Compare(a.pos, b.pos))
		})
		some = slices.Compact(some)
		for len(some) > 0 && bytes < engine.AnswerBytes {
			n := 1
			for n < len(some) && some[n].src == some[0].src {
				n++
			}
			read, err := f.readOf(some[0].src, some[:n], engine.AnswerBytes-bytes)
			if err != nil {
				return err
			}
			bytes += read
			some = some[n:]
		}
	}
	return nil
}

// readOf reads values of one run, until they have so many bytes.
func (f *found) readOf(src *source, spots []spot, most int) (bytes int, err error) {
	defer func() { f.bytes += bytes }()
	for len(spots) > 0 {
		positions := make([]uint32, len(spots))
		for i, s := range spots {
			positions[i] = s.pos
		}
		done := 0
		err := src.GetEach(positions, func(e run.Entry) bool {
			e.Value = slices.Clone(e.Value)
			f.values[spots[done]] = e
			done++
			bytes += len(e.Value)
			return bytes < most
		})
		switch {
		case err == nil, errors.Is(err, run.ErrClosed): // it was merged away: the next step knows
			return bytes, nil
		case !errors.Is(err, run.ErrDamaged):
			return bytes, err
		}
		f.broken[spots[done]] = err
		spots = spots[done+1:]
	}
	return bytes, nil
}

// sought is what is known of a key that is looked for: its hash in a queue, and a set of runs in
// of whose messages that live, or are remembered, none has it.
type sought struct {
	num    uint32
	key    run.Key
	absent *sources
}

// seek looks keys up before a step asks for them: most are in no run, which is seen without the
// lock, and what is to be read for the others is read at once.
func (c *call) seek(n int, key func(i int) (queue, key string), to []sought) error {
	e := c.e
	set := e.outer.Load()
	if set.none() {
		return nil
	}
	for i := range n {
		queue, key := key(i)
		if key == "" {
			continue
		}
		num, ok := e.nums.Load(queue)
		if !ok {
			continue
		}
		h := sought{num: num.(uint32)}
		h.key = e.secret.Key(h.num, key)
		absent := true
		for _, area := range [...]recent.Area{recent.Live, recent.Finished} {
			if set.mayHold(area, h.key) {
				absent = false
				c.lacks.keys = append(c.lacks.keys, keyAt{area, h.key})
			}
		}
		if absent {
			h.absent = set
		}
		to[i] = h
	}
	if len(c.lacks.keys) == 0 {
		return nil
	}
	c.lacks.set = set
	return c.read()
}

// none reports whether there are no runs.
func (s *sources) none() bool {
	return len(s.of[recent.Live]) == 0 && len(s.of[recent.Finished]) == 0
}

// mayHold reports whether any run of an area may hold a key.
func (s *sources) mayHold(a recent.Area, key run.Key) bool {
	for _, src := range s.of[a] {
		if src.MayHold(key) {
			return true
		}
	}
	return false
}

// lackKey says that a key is to be looked up.
func (c *call) lackKey(k keyAt) error {
	c.lacks.set = c.e.runs
	c.lacks.keys = append(c.lacks.keys, k)
	return errLack
}

func (c *call) lackID(id engine.ID) error {
	c.lacks.set = c.e.runs
	c.lacks.ids = append(c.lacks.ids, id)
	return errLack
}

func (c *call) lackValue(at spot) error {
	c.lacks.values = append(c.lacks.values, at)
	return errLack
}

// spotOfID returns where a message stands in the runs that is not among the recent ones; the zero
// spot: nowhere.
func (c *call) spotOfID(id engine.ID) (spot, error) {
	e := c.e
	if !e.mayHoldID(id) {
		return spot{}, nil
	}
	c.found.in(e.runs)
	if err := c.found.badID[id]; err != nil {
		return spot{}, err
	}
	at, ok := c.found.ids[id]
	if !ok {
		return spot{}, c.lackID(id)
	}
	return at.now(), nil
}

// mayHoldID reports whether any run may have an id.
func (e *Engine) mayHoldID(id engine.ID) bool {
	for _, list := range e.runs.of {
		for _, src := range list {
			if uint64(id) <= src.MaxID() {
				return true
			}
		}
	}
	return false
}

// spotsOfKey returns where those stand in the runs who have a key, of each run one.
func (c *call) spotsOfKey(q *queue, area recent.Area, key []byte, hash *sought) ([]spot, error) {
	e := c.e
	list := e.runs.of[area]
	if len(list) == 0 {
		return nil, nil
	}
	if hash.num != q.num {
		*hash = sought{num: q.num, key: e.secret.Key(q.num, string(key))}
	}
	if hash.absent == e.runs && area != recent.Dead {
		return nil, nil
	}
	k := keyAt{area, hash.key}
	c.found.in(e.runs)
	if err := c.found.badKey[k]; err != nil {
		return nil, err
	}
	spots, ok := c.found.keys[k]
	if ok {
		for _, s := range spots {
			if area == recent.Dead && s.now().src == nil {
				delete(c.found.keys, k) // another one of the same run may have the key
				return nil, c.lackKey(k)
			}
		}
		return spots, nil
	}
	for _, src := range list {
		if src.MayHold(k.key) {
			return nil, c.lackKey(k)
		}
	}
	return nil, nil
}

// valueAt returns what stands at a spot.
func (c *call) valueAt(at spot) (run.Entry, error) {
	v, ok := c.found.values[at]
	if !ok {
		if err := c.found.broken[at]; err != nil {
			return run.Entry{}, err
		}
		return run.Entry{}, c.lackValue(at)
	}
	return v, nil
}

// parse takes the value of an entry of a run apart.
func parse(v run.Entry) (key []byte, s record.State, content []byte, err error) {
	key, value, err := record.ParseKeyed(v.Value)
	if err == nil {
		s, content, err = record.ParseValue(value)
	}
	return key, s, content, err
}
