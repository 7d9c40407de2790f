package diskengine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// sweepChunk is how many messages purge and redrive change in one batch.
const sweepChunk = 500

// sweep is a walk over an order of a queue, chunk by chunk, that is to meet just
// what the order held when the walk began. A snapshot would show that, and keep on
// disk all that is removed meanwhile: a purge is what makes room. So the walk reads
// the order as it stands, up to what was its end, and passes over what came in
// since. New messages have ids from bound on; others are noted under the queue's
// lock as they come back.
type sweep struct {
	q     *queue
	kind  byte
	from  position // the walk stands here
	end   position // and ends before here
	bound engine.ID
	done  bool

	over   atomic.Bool            // the walk has ended: nothing need be noted
	spared map[engine.ID]position // waits here, and was leased or dead meanwhile
	prune  int                    // how many spared make it worth forgetting those the walk has passed
	moved  map[engine.ID]struct{} // waits elsewhere than it did
}

// sparedMost is how many spared messages are kept before the first look at which
// of them the walk has passed.
const sparedMost = 1 << 14

// survey begins walks over orders of one queue, which may be nil, at one moment.
func (e *Engine) survey(ctx context.Context, op string, q *queue, sweeps ...*sweep) error {
	err := e.do(ctx, op, func(now clock, p *pending) error {
		if q == nil {
			return nil
		}
		defer q.mu.Unlock()
		now, err := q.lockWhole(ctx, now, p)
		if err != nil {
			return err
		}
		p.see(q)
		for _, s := range sweeps {
			if err := s.begin(now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for _, s := range sweeps {
			s.over.Store(true)
		}
	}
	return err
}

// begin notes, under the queue's lock, where the walk begins and ends.
func (s *sweep) begin(now clock) error {
	q := s.q
	lower := appendHead(nil, s.kind, q.num)
	it, err := q.e.store.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upperBound(lower)})
	if err != nil {
		return err
	}
	s.from = position{at: never}
	switch s.kind {
	case kindDue:
		s.from = q.mark
	case kindDead:
		s.from = q.firstGrave(now)
	case kindForget:
		s.from.at = q.forgets
	}
	if it.Last() {
		_, s.end, err = parseTimeKey(it.Key(), s.kind)
		s.end = s.end.after()
	} else {
		s.end = s.from
	}
	if err := errors.Join(err, it.Close()); err != nil {
		return err
	}
	s.bound = q.e.unusedID()
	if s.kind == kindDue {
		s.spared, s.prune, s.moved = make(map[engine.ID]position), sparedMost, make(map[engine.ID]struct{})
		q.sweeps = append(q.sweeps, s)
	}
	return nil
}

// scan returns the next entries of the order.
func (s *sweep) scan(most int) ([]position, error) {
	var chunk []position
	if !s.from.less(s.end) {
		return nil, nil
	}
	lower, upper := timeKey(nil, s.kind, s.q.num, s.from), timeKey(nil, s.kind, s.q.num, s.end)
	err := scan(s.q.e.store.db, lower, upper, func(k, _ []byte) (bool, error) {
		_, at, err := parseTimeKey(k, s.kind)
		chunk = append(chunk, at)
		return len(chunk) < most, err
	})
	return chunk, err
}

// next returns the next chunk of an order that nothing but time adds to, and moves on.
func (s *sweep) next() ([]position, error) {
	chunk, err := s.scan(sweepChunk)
	if err != nil {
		return nil, err
	}
	s.from = s.end
	if len(chunk) == sweepChunk {
		s.from = chunk[len(chunk)-1].after()
	}
	s.done = s.from == s.end
	return chunk, nil
}

// stands reports whether an order has an entry at just this place.
func (q *queue) stands(kind byte, at position) (bool, error) {
	return q.e.store.get(q.e.store.db, timeKey(nil, kind, q.num, at), func([]byte) error { return nil })
}

// note takes in, under the queue's lock, what a change put into due order. What it
// took out just before, ahead of the walk, waited already; what stood behind the
// walk is spared, whether that is still remembered or not.
func (s *sweep) note(ops []nearOp) {
	for i, op := range ops {
		if !op.put || op.id >= s.bound {
			continue
		}
		_, spared := s.spared[op.id]
		_, moved := s.moved[op.id]
		waited := i > 0 && ops[i-1].id == op.id && !ops[i-1].put
		if waited && !spared && (moved || !ops[i-1].less(s.from)) {
			s.moved[op.id] = struct{}{}
			continue
		}
		s.spared[op.id] = op.position
		delete(s.moved, op.id)
	}
	if len(s.spared) > s.prune {
		for id, at := range s.spared {
			if at.less(s.from) {
				delete(s.spared, id)
			}
		}
		s.prune = max(sparedMost, 2*len(s.spared))
	}
}

// noteSweeps tells the walks under way of a change.
func (q *queue) noteSweeps(ops []nearOp) {
	if len(q.sweeps) == 0 {
		return
	}
	q.sweeps = slices.DeleteFunc(q.sweeps, func(s *sweep) bool { return s.over.Load() })
	for _, s := range q.sweeps {
		s.note(ops)
	}
}

// changeEach makes one batch of what fn does to each message.
func (q *queue) changeEach(now clock, p *pending, chunk []position, fn func(c *change, at position) error) error {
	return q.change(now, p, len(chunk), func(c *change) error {
		for _, at := range chunk {
			if err := fn(c, at); err != nil {
				return err
			}
		}
		return nil
	})
}
