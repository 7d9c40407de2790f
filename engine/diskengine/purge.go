package diskengine

import (
	"context"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// Purge removes what was scheduled or ready when it began, and what also says, in chunks that are durable one by one. What is pushed, retried, released
// or redriven while it runs stays; what is rescheduled or replaced goes.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (int64, error) {
	q := e.queue(name)
	waits, graves, memories := &sweep{q: q, kind: kindDue}, &sweep{q: q, kind: kindDead}, &sweep{q: q, kind: kindForget}
	defer waits.over.Store(true)
	if err := e.survey(ctx, "purge", q, waits, graves, memories); err != nil || q == nil {
		return 0, err
	}
	n, err := e.purge(ctx, waits, (*sweep).purgeWaiting)
	if err == nil && also&engine.PurgeDead != 0 {
		var m int64
		m, err = e.purge(ctx, graves, (*sweep).purgeDead)
		n += m
	}
	if err == nil && also&engine.PurgeFinished != 0 {
		var m int64
		m, err = e.purge(ctx, memories, (*sweep).purgeFinished)
		n += m
	}
	return n, err
}

// purge walks an order and removes what it meets.
func (e *Engine) purge(ctx context.Context, s *sweep, chunk func(s *sweep, now clock, p *pending) (int64, error)) (int64, error) {
	var total int64
	for !s.done {
		var n int64
		err := e.do(ctx, "purge", func(now clock, p *pending) (err error) {
			n, err = chunk(s, now, p)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// purgeWaiting removes the next messages of due order, and those that have moved.
func (s *sweep) purgeWaiting(now clock, p *pending) (n int64, err error) {
	chunk, err := s.scan(sweepChunk)
	if err != nil {
		return 0, err
	}
	n, lost, err := s.purgeChunk(now, p, chunk)
	if err != nil {
		return 0, err
	}
	return n, s.q.removeLost(now, p, lost)
}

// purgeChunk removes what was met and those that have moved, and returns too those
// whose records cannot be read, which are still to be removed.
func (s *sweep) purgeChunk(now clock, p *pending, chunk []position) (n int64, lost map[engine.ID]position, err error) {
	q := s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	purge := func(c *change, at position) error {
		if _, spared := s.spared[at.id]; spared || at.id >= s.bound || c.held(at.id) != nil {
			return nil
		}
		r, err := c.message(at.id)
		switch {
		case isDamage(err) && at.at != never:
			n++
			c.lose(at.id, at)
			return nil
		case err != nil:
			return err
		case r == nil:
			if there, err := q.stands(kindDue, at); err != nil || !there {
				return err
			}
			return c.dequeue(at) // it leads nowhere
		case r.dead:
			return nil
		case r.expired(c.now.ms):
			return c.expire(r)
		}
		n++
		return c.drop(r)
	}
	err = q.changeLocked(now, p, len(chunk), func(c *change) error {
		s.from = s.end
		if len(chunk) == sweepChunk {
			s.from = chunk[len(chunk)-1].after()
		}
		for id := range s.moved {
			chunk = append(chunk, position{never, id})
		}
		clear(s.moved)
		for _, at := range chunk {
			if err := purge(c, at); err != nil {
				return err
			}
		}
		lost = c.lost
		return nil
	})
	if s.done = s.from == s.end && len(s.moved) == 0; s.done {
		q.sweeps = slices.DeleteFunc(q.sweeps, func(o *sweep) bool { return o == s })
	}
	return n, lost, err
}

// purgeDead removes the next dead messages.
func (s *sweep) purgeDead(now clock, p *pending) (n int64, err error) {
	chunk, err := s.next()
	if err != nil {
		return 0, err
	}
	err = s.q.changeEach(now, p, chunk, func(c *change, at position) error {
		was, err := c.unearth(at)
		if was {
			n++
		}
		return err
	})
	return n, err
}

// unearth removes the message of a grave, and reports whether there was one.
func (c *change) unearth(at position) (was bool, err error) {
	r, err := c.message(at.id)
	was = r != nil || isDamage(err)
	switch {
	case err != nil && !was:
		return false, err
	case !was: // its grave may be left of one that was cancelled by its id
		if there, err := c.q.stands(kindDead, at); err != nil || !there {
			return false, err
		}
	case err == nil && (!r.dead || r.grave() != at):
		return false, nil
	case err == nil:
		return true, errors.Join(c.exhume(r), c.remove(r.id, "", r.apart))
	}
	c.counts.dead-- // its key, which leads nowhere, is not known
	c.buf = timeKey(c.buf[:0], kindDead, c.q.num, at)
	return was, errors.Join(c.delete(c.buf), c.remove(at.id, "", true))
}
