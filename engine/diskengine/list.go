package diskengine

import (
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// List lists the messages of a queue in one state. A page is read from a
// snapshot, so that nobody waits for it.
func (e *Engine) List(ctx context.Context, want engine.ListQuery) (engine.Page, error) {
	var page engine.Page
	err := e.do(ctx, "list", func(now clock, p *pending) error {
		if err := want.Check(); err != nil {
			return err
		}
		span, err := token.SpanOf(&want)
		if err != nil {
			return err
		}
		q := e.queue(want.Queue)
		if q == nil {
			return nil
		}
		l := lister{q: q, query: want, from: position{span.Low.At, span.Low.ID}, to: position{span.High.At, span.High.ID}, page: &page}
		now, err = q.lockWhole(ctx, now, p)
		p.see(q)
		l.snap, l.now = e.store.db.NewSnapshot(), now.ms
		switch want.State {
		case engine.Leased:
			l.copyLeases()
		case engine.Dead:
			l.within(q.firstGrave(now), lastPosition)
		case engine.Ready:
			l.within(q.mark, position{at: now.ms + 1})
		case engine.Scheduled:
			l.within(position{at: now.ms + 1}, lastPosition)
		}
		q.mu.Unlock()
		if err == nil {
			err = l.list()
		}
		return errors.Join(err, l.snap.Close())
	})
	if err != nil {
		return engine.Page{}, err
	}
	return page, nil
}

// lister reads one page.
type lister struct {
	q      *queue
	query  engine.ListQuery
	from   position // the first place to look at
	to     position // and the one behind the last
	now    int64
	snap   *pebble.Snapshot
	leases []lease
	page   *engine.Page
	last   position // looked at
	looked int
	bytes  int // of bodies
}

// within narrows what is looked at.
func (l *lister) within(from, to position) {
	if l.from.less(from) {
		l.from = from
	}
	if to.less(l.to) {
		l.to = to
	}
}

// copyLeases copies the leases to look at, which are in memory.
func (l *lister) copyLeases() {
	for _, x := range l.q.leases.byID {
		if at := (position{x.deadline, x.id}); !at.less(l.from) && at.less(l.to) {
			l.leases = append(l.leases, *x)
		}
	}
}

func (l *lister) list() error {
	switch l.query.State {
	case engine.Leased:
		return l.listLeased()
	case engine.Dead:
		return l.listOrder(kindDead)
	default:
		return l.listOrder(kindDue)
	}
}

func (l *lister) listOrder(kind byte) error {
	if !l.from.less(l.to) {
		return nil
	}
	walk := scan
	if l.query.Newest {
		walk = scanBack
	}
	lower, upper := timeKey(nil, kind, l.q.num, l.from), timeKey(nil, kind, l.q.num, l.to)
	return walk(l.snap, lower, upper, func(k, _ []byte) (bool, error) {
		_, at, err := parseTimeKey(k, kind)
		if err != nil {
			return false, err
		}
		return l.add(at, func(r *record) engine.Info { return r.info(l.q.name, l.now) })
	})
}

func (l *lister) listLeased() error {
	slices.SortFunc(l.leases, func(a, b lease) int {
		if l.query.Newest {
			a, b = b, a
		}
		return position{a.deadline, a.id}.compare(position{b.deadline, b.id})
	})
	for i := range l.leases {
		x := &l.leases[i]
		more, err := l.add(position{x.deadline, x.id}, func(r *record) engine.Info { return l.q.leasedInfo(r, x, l.now) })
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// listMost is how many messages one page looks at: it ends there when few of them
// are to be shown.
const listMost = 10_000

// add puts a message on the page, or ends the page when that is full. What is past
// its expiry is not shown.
func (l *lister) add(at position, info func(*record) engine.Info) (bool, error) {
	if len(l.page.Messages) == l.query.Limit || l.bytes >= engine.AnswerBytes || l.looked == listMost {
		l.page.Next = token.Place{At: l.last.at, ID: l.last.id}.Cursor(&l.query)
		return false, nil
	}
	l.looked++
	l.last = at
	r, err := l.q.readMessage(l.snap, at.id, l.query.Body)
	if isDamage(err) {
		l.q.e.damaged(l.q, at.id, err)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if r == nil || l.query.State != engine.Leased && r.expired(l.now) {
		return true, nil
	}
	i := info(r)
	if !l.query.Body {
		i.Body = nil
	}
	l.page.Messages = append(l.page.Messages, i)
	l.bytes += len(i.Body)
	return true, nil
}

// newestDead returns the id of the newest dead message that had a key, or 0.
func (q *queue) newestDead(key string) (engine.ID, error) {
	prefix := deadNamePrefix(nil, q.num, key)
	it, err := q.e.store.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: upperBound(prefix)})
	if err != nil {
		return 0, err
	}
	var p position
	if it.Last() {
		p, err = parseDeadNameKey(it.Key())
	}
	return p.id, errors.Join(err, it.Close())
}
