package diskengine

import (
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
)

// tally counts the live messages of a queue by due time. It looks up where the times are in
// the sstables without the lock.
type tally struct {
	set   *store.Sources
	times []int64 // ascending
	parts []part
}

// part is a queue's part of an sstable: its first position, and the position of each time.
type part struct {
	src    *store.Source
	from   uint32
	before []uint32
}

// tallied looks up in the sstables where some times are. Then it runs do in a step on the
// queue, if that exists.
func (c *call) tallied(name string, t *tally, times func(*call) []int64, do func(*queue) error) error {
	var num uint32
	for {
		err := c.step(func() error {
			q, err := c.visit(name, false)
			if err != nil || q == nil {
				return err
			}
			c.see(q)
			if t.set == nil && !c.e.anyTable(q) {
				t.set, t.times = c.e.store.Tables, times(c)
			}
			if t.set != c.e.store.Tables {
				t.set, t.times, num = c.e.store.Tables, times(c), q.num
				return errSearch
			}
			return do(q)
		})
		if err != errSearch {
			return err
		}
		if err := c.withoutLock(func() error { return t.search(num) }); err != nil {
			return err
		}
	}
}

// errSearch says that places in sstables must be looked up first.
var errSearch = errors.New("places in sstables must be looked up first")

// anyTable reports whether any sstable of live messages has a part of a queue.
func (e *Engine) anyTable(q *queue) bool {
	return slices.ContainsFunc(e.store.Tables.Of[memtable.Live], func(src *store.Source) bool {
		_, ok := src.Queue(q.num)
		return ok
	})
}

// search looks up the places of the times in the sstables.
func (t *tally) search(num uint32) error {
	t.parts = nil
	places := make([]sstable.Place, len(t.times))
	for i, at := range t.times {
		places[i] = sstable.Place{Queue: num, At: at}
	}
	for _, src := range t.set.Of[memtable.Live] {
		q, ok := src.Queue(num)
		if !ok {
			continue
		}
		before, _, err := src.Search(places...) // not exact in a damaged block
		if errors.Is(err, sstable.ErrClosed) {
			t.set = new(store.Sources) // it was merged away: look again
			return nil
		}
		if err != nil {
			return err
		}
		for i, pos := range before {
			before[i] = min(max(pos, q.From), q.To)
		}
		t.parts = append(t.parts, part{src, q.From, before})
	}
	return nil
}

// upTo counts the pending messages that are due before the i-th time.
func (t *tally) upTo(c *call, q *queue, i int) int64 {
	n := c.e.store.Memtables.CountRange(q.num, memtable.Live, memtable.First, memtable.Position{At: t.times[i]})
	if q.leased > 0 {
		n -= q.leases.DueBefore(q.num, t.times[i])
	}
	for _, p := range t.parts {
		n += int64(p.src.Count(p.from, p.before[i]))
	}
	return n
}

// firstFrom is when the first pending message from a position on is due; never: there is none.
// The search continues from where l says that it stopped.
func (c *call) firstFrom(q *queue, l *first, from memtable.Position) (int64, error) {
	if !l.begun {
		l.from, l.walked, l.begun = from, from, true
		l.Area = memtable.Live
	}
	from = l.from
	l.Refresh(c.e.store, q.num, from)
	at, steps := int64(never), 0
	c.e.store.Memtables.Ascend(q.num, memtable.Live, l.walked, func(e memtable.Entry) bool {
		if q.held(engine.ID(e.ID)) {
			steps++
			l.walked = e.Position().Next()
			return steps < 4*store.StepItems
		}
		at = e.At
		return false
	})
	if steps == 4*store.StepItems { // so many in a row are leased
		return 0, errYield
	}
	timeWillDo := q.leased == q.leases.DueBefore(q.num, from.At) // from there on nothing is leased
	for {
		if err := l.Heads(&c.reader, from, at, timeWillDo); err != nil {
			return 0, err
		}
		again := false
		for _, k := range l.All {
			again = k.Skip(q.held) || again
			if due, exact, ok := k.Floor(q.held); ok && exact && (k.Head() != nil || timeWillDo) {
				at = min(at, due)
			}
		}
		if !again {
			return at, nil
		}
	}
}
