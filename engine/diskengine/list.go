package diskengine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// List lists the messages of a queue in one state.
func (e *Engine) List(ctx context.Context, lq engine.ListQuery) (engine.Page, error) {
	if err := lq.Check(); err != nil {
		return engine.Page{}, err
	}
	span, err := codec.SpanOf(&lq)
	if err != nil {
		return engine.Page{}, err
	}
	l := listing{name: lq.Queue, state: lq.State, span: span, newest: lq.Newest, most: lq.Limit, body: lq.Body}
	if err := e.do(ctx, "list", l.run); err != nil {
		return engine.Page{}, err
	}
	page := engine.Page{Messages: l.found}
	if l.more {
		page.Next = l.last.Cursor(&lq)
	}
	return page, nil
}

// listing is a page of a list in the making. It takes candidates from the sstables without the
// lock, and then from the memtables in a step: what moves meanwhile goes from an sstable to a
// memtable, or by a flush to a new sstable, and then it begins again. Messages gone by the time
// they are shown are left out.
type listing struct {
	name   string
	state  engine.State
	span   codec.Span
	newest bool
	most   int
	body   bool
	bare   bool // only ids are needed

	found []engine.Info
	more  bool
	last  codec.Place // the last one looked at

	seen []candidate
	set  *store.Sources
	q    *queue
	end  bool // seen has all candidates there are
}

// candidate is a message that may be on the page.
type candidate struct {
	codec.Place
	at store.Spot // zero: in a memtable
}

func (l *listing) run(c *call) error {
	for same := false; !same; {
		if err := c.step(func() error { return l.begin(c) }); err != nil || l.q == nil {
			return err
		}
		if l.state == engine.Leased {
			break
		}
		err := c.withoutLock(func() error { return l.scan(c) })
		if errors.Is(err, sstable.ErrClosed) { // an sstable was merged away
			continue
		}
		if err == nil {
			err = c.step(func() error { same = l.walk(c); return nil })
		}
		if err != nil {
			return err
		}
	}
	l.order()
	if err := c.withoutLock(func() error { return l.read(c) }); err != nil {
		return err
	}
	for i := 0; i < len(l.seen); {
		bytes := 0
		err := c.step(func() error {
			if _, err := c.visit(l.name, false); err != nil {
				return err
			}
			c.see(l.q)
			for n := 0; i < len(l.seen) && n < store.StepItems; n++ {
				if len(l.found) == l.most || bytes >= engine.AnswerBytes {
					l.more = true
					return nil
				}
				read, err := l.show(c, &l.seen[i])
				if err != nil {
					return err
				}
				bytes += read
				l.last = l.seen[i].Place
				i++
			}
			return nil
		})
		if err != nil || l.more {
			return err
		}
	}
	l.more = !l.end
	return nil
}

// begin notes which sstables there are, and takes the candidates that are leased.
func (l *listing) begin(c *call) error {
	q, err := c.visit(l.name, false)
	if q == nil || err != nil {
		return err
	}
	c.see(q)
	l.q, l.set, l.end = q, c.e.store.Tables, true
	l.seen = l.seen[:0]
	switch now := (codec.Place{At: c.ms + 1}); l.state {
	case engine.Leased:
		l.leased(c, q)
	case engine.Scheduled:
		l.from(now)
	case engine.Ready:
		if l.span.High.Compare(now) > 0 {
			l.span.High = now
		}
	case engine.Finished:
		l.from(codec.Place{At: c.listedFrom(q)})
	case engine.Dead:
		l.from(codec.Place{At: q.settings.DeadFrom(c.ms)})
	}
	return nil
}

// from leaves out what is before a place.
func (l *listing) from(low codec.Place) {
	if l.span.Low.Compare(low) < 0 {
		l.span.Low = low
	}
}

// walk takes the candidates in memtables, and reports whether the sstables of the area are still
// the same.
func (l *listing) walk(c *call) bool {
	c.see(l.q)
	walk := c.e.store.Memtables.Ascend
	if l.newest {
		walk = c.e.store.Memtables.Descend
	}
	take := l.taker()
	walk(l.q.num, l.area(), l.edge(), func(e memtable.Entry) bool { return take(e.Position(), store.Spot{}) })
	return slices.Equal(l.set.Of[l.area()], c.e.store.Tables.Of[l.area()])
}

// scan takes the candidates in sstables.
func (l *listing) scan(c *call) error {
	return c.e.store.Walk(l.set, l.area(), l.q.num, l.edge(), l.newest, l.taker())
}

// edge is where the list begins.
func (l *listing) edge() memtable.Position {
	p := l.span.Low
	if l.newest {
		p = l.span.High
	}
	return memtable.Position{At: p.At, ID: l.area().IDOf(uint64(p.ID))}
}

// taker returns a function that takes candidates of one source in the order of the list, until
// it returns false.
func (l *listing) taker() func(at memtable.Position, spot store.Spot) bool {
	n := 0
	return func(at memtable.Position, spot store.Spot) bool {
		p := codec.Place{At: at.At, ID: engine.ID(memtable.MessageOf(at.ID))}
		switch {
		case !l.span.Holds(p):
			return false
		case n > 0 && p == l.seen[len(l.seen)-1].Place: // another sstable has it too
			return true
		case n == l.candidates():
			l.end = false
			return false
		}
		l.seen = append(l.seen, candidate{p, spot})
		n++
		return true
	}
}

// leased takes the candidates that are leased.
func (l *listing) leased(c *call, q *queue) {
	walk := q.leases.Ascend
	if l.newest {
		walk = q.leases.Descend
	}
	take := l.taker()
	walk(q.num, l.edge(), func(x *lease) bool {
		return take(memtable.Position{At: x.Deadline, ID: x.ID}, c.e.spotOfLease(x))
	})
}

func (l *listing) area() memtable.Area {
	switch l.state {
	case engine.Dead:
		return memtable.Dead
	case engine.Finished:
		return memtable.Listed
	}
	return memtable.Live
}

// candidates is the most candidates that each source gives: more than a page, as some may not
// be shown.
func (l *listing) candidates() int { return l.most + 64 }

// order sorts the candidates. If a source had more than it gave, the candidates beyond that
// number are left to the next page.
func (l *listing) order() {
	slices.SortFunc(l.seen, func(a, b candidate) int {
		if a.Place == b.Place { // the one without a table first: it is found by its id, also if flushed
			return cmp.Compare(a.at.Record().Table, b.at.Record().Table)
		}
		if l.newest {
			a, b = b, a
		}
		return a.Compare(b.Place)
	})
	l.seen = slices.CompactFunc(l.seen, func(a, b candidate) bool { return a.Place == b.Place })
	if n := l.candidates(); !l.end && len(l.seen) > n {
		l.seen = l.seen[:n]
	}
}

// read reads the values of the first candidates that are in sstables.
func (l *listing) read(c *call) error {
	if l.bare {
		return nil
	}
	for i := range l.seen[:min(len(l.seen), l.most)] {
		if at := l.seen[i].at; at.Src != nil && at.Src.Alive(at.Pos) {
			_, _ = c.reader.Whole(at)
		}
	}
	return c.reader.Read()
}

// show puts a candidate on the page if it is still in its place, in the state that is listed.
func (l *listing) show(c *call, x *candidate) (bytes int, err error) {
	q := l.q
	if q.gone {
		return 0, nil
	}
	var m message
	var past *engine.Info
	ok := false
	if l.state == engine.Finished {
		past, err = l.finished(c, x)
	} else if e, found := c.e.store.Memtables.ByID(uint64(x.ID)); found {
		if !e.Area.IsMessage() || e.Queue != q.num {
			return 0, nil
		}
		m, err = c.fromMemtable(q, e)
		ok = err == nil
	} else {
		at := x.at.Now()
		if at.Src == nil && (x.at.Src == nil || l.state == engine.Leased) { // it was in a memtable
			if at, err = c.reader.ByID(x.ID); err != nil {
				return 0, err
			}
		}
		if at.Src != nil {
			if l.bare {
				l.found = append(l.found, engine.Info{ID: x.ID})
				return 0, nil
			}
			m, ok, err = c.messageAt(q, at)
		}
	}
	if errors.Is(err, sstable.ErrDamaged) {
		c.damaged(q, x.ID, err)
		return 0, nil
	}
	if past != nil {
		l.found = append(l.found, *past)
		return infoBytes, nil
	}
	if err != nil || !ok || !c.shown(&m) || m.past(c.ms) || m.state(c.ms) != l.state || l.place(&m) != x.Place {
		return 0, err
	}
	if err := c.needContent(&m); err != nil {
		return 0, err
	}
	i, err := c.info(&m, l.body)
	if err != nil {
		c.damaged(q, x.ID, err)
		return 0, nil
	}
	l.found = append(l.found, i)
	return len(m.content), nil
}

// finished is a candidate that is a finished message; nil: it is listed no more.
func (l *listing) finished(c *call, x *candidate) (*engine.Info, error) {
	if x.at.Src == nil {
		return c.listedByID(l.q, x.ID)
	}
	at := x.at.Now()
	if at.Src == nil {
		return nil, nil
	}
	return c.listedAt(l.q, at)
}

// place is the position of a message in the list.
func (l *listing) place(m *message) codec.Place {
	switch l.state {
	case engine.Leased:
		return codec.Place{At: m.lease.Deadline, ID: m.id}
	case engine.Dead:
		return codec.Place{At: m.Died, ID: m.id}
	}
	return codec.Place{At: m.Due, ID: m.id}
}
