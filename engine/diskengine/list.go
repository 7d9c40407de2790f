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
		after := position{at: never}
		if at, err := token.After(&want); err != nil {
			return err
		} else if at != nil {
			after = position{at.At, at.ID}.after()
		}
		q := e.queue(want.Queue)
		if q == nil {
			return nil
		}
		l := lister{q: q, query: want, after: after, now: now.ms, page: &page}
		now, err := q.lockWhole(ctx, now, p)
		p.see(q)
		l.snap = e.store.db.NewSnapshot()
		if want.State == engine.Leased {
			l.copyLeases()
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
	after  position // the first place to look at
	now    int64
	snap   *pebble.Snapshot
	leases []lease
	page   *engine.Page
	last   position // looked at
	looked int
	bytes  int // of bodies
}

// copyLeases copies the leases behind the cursor, which are in memory.
func (l *lister) copyLeases() {
	for _, x := range l.q.leases.byID {
		if !(position{x.deadline, x.id}).less(l.after) {
			l.leases = append(l.leases, *x)
		}
	}
}

func (l *lister) list() error {
	num := l.q.num
	switch l.query.State {
	case engine.Leased:
		return l.listLeased()
	case engine.Dead:
		return l.listOrder(kindDead, l.after, upperBound(appendHead(nil, kindDead, num)))
	case engine.Ready:
		from := l.after
		if mark := l.q.markNow(); from.less(mark) {
			from = mark
		}
		return l.listOrder(kindDue, from, timeKey(nil, kindDue, num, position{at: l.now + 1}))
	default:
		from := l.after
		if next := (position{at: l.now + 1}); from.less(next) {
			from = next
		}
		return l.listOrder(kindDue, from, upperBound(appendHead(nil, kindDue, num)))
	}
}

func (q *queue) markNow() position {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mark
}

func (l *lister) listOrder(kind byte, from position, upper []byte) error {
	lower := timeKey(nil, kind, l.q.num, from)
	if string(lower) >= string(upper) {
		return nil
	}
	return scan(l.snap, lower, upper, func(k, _ []byte) (bool, error) {
		_, at, err := parseTimeKey(k, kind)
		if err != nil {
			return false, err
		}
		return l.add(at, func(r *record) engine.Info { return r.info(l.q.name, l.now) })
	})
}

func (l *lister) listLeased() error {
	slices.SortFunc(l.leases, func(a, b lease) int {
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
