package sqlengine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pushBlind carries out a push without looking first: it believes that none of the keys is
// there, what was last seen of the queues, and what is known of the database's clock. All
// that goes out at once, with the commit, and the database undoes it if any of it is wrong.
// What comes first in the queues matters to others, unless all that is pushed is far. It
// reports whether it is done; else the push is to be run as others are.
func (e *Engine) pushBlind(ctx context.Context, queues []int64, names []Name, p Patience, far bool, fn func(*work) error) (done bool, err error) {
	now, latest, fresh := e.span()
	if e.cfg.later != nil || p == Least || !fresh || len(queues) > blindMost {
		return false, nil
	}
	believed := e.seen.plain(queues, boundsPending)
	if believed == nil || !e.blind.may(queues) {
		return false, nil
	}
	sent := time.Now()
	var w *work
	var opened func() Opened
	g := e.floors.of(queues, rough)
	err = e.in(ctx, "push", func(tx Tx) (err error) {
		w = e.work(ctx, tx, "push", now, len(queues))
		w.latest = latest
		for i := range believed {
			w.queues[believed[i].Num] = &Heads{Queue: believed[i], Waiting: never, Leased: never, Dead: never, Forgotten: never}
		}
		for _, name := range names {
			w.seats[name] = new(seat)
		}
		belief := Belief{Queues: believed, Ask: e.present.old(), Patience: p}
		if !far {
			belief.From = g.from
		}
		if e.cfg.Now == nil {
			belief.Now = now
		}
		if opened, err = tx.Believe(ctx, belief); err != nil {
			return err
		}
		if err := fn(w); err != nil {
			return err
		}
		for _, x := range w.order {
			if x.gone && x.Key != "" {
				return errAlone // what had expired before it came takes no key, which may be held
			}
		}
		return w.write()
	})
	if err != nil {
		e.floors.drop(g)
	}
	if _, refused := err.(errRefused); refused {
		return false, nil // by what is there it may be for another reason
	}
	if errors.Is(err, ErrBusy) {
		return p != Endless, err
	}
	undone := errors.Is(err, ErrAgain) || err == errAlone
	e.blind.was(queues, undone)
	if undone {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	o := opened()
	if !o.Now.IsZero() {
		e.present.seen(o.Now, sent)
	}
	e.seen.note(o.Heads)
	e.floors.saw(g, o.Heads, e.clock(o.Now).UnixMilli(), 0)
	seen := o.Heads
	for i := range seen {
		w.queues[seen[i].Num] = &seen[i]
	}
	e.committed(w)
	return true, nil
}

// blindMost is to how many queues at once.
const blindMost = 64

// blind is how pushes went that did not look.
type blind struct {
	mu     sync.Mutex
	queues map[int64]*luck // those in which one was undone lately
}

// luck is how many pushes to a queue are still to look first, and how many were to after
// the last that was undone.
type luck struct{ left, of int }

// The bounds of that: where many keys are there already hardly a push is blind.
const (
	luckLeast = 4
	luckMost  = 1024
)

// may reports whether a push to queues need not look.
func (b *blind) may(queues []int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	may := true
	for _, q := range queues {
		if l := b.queues[q]; l != nil && l.left > 0 {
			l.left--
			may = false
		}
	}
	return may
}

// was takes note of how one went.
func (b *blind) was(queues []int64, undone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range queues {
		l := b.queues[q]
		switch {
		case undone && l == nil:
			b.queues[q] = &luck{luckLeast, luckLeast}
		case undone:
			l.of = min(2*l.of, luckMost)
			l.left = l.of
		case l != nil:
			if l.of /= 2; l.of < luckLeast {
				delete(b.queues, q)
			}
		}
	}
}
