package diskengine

import (
	"context"
	"math"

	"github.com/tarryhq/tarry/engine"
)

// Redrive makes dead messages ready again: those with the ids given, else the
// first by death. It works in chunks that are durable one by one.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (engine.Redriven, error) {
	var total engine.Redriven
	q := e.queue(name)
	if len(ids) == 0 {
		if limit <= 0 {
			limit = math.MaxInt
		}
		return e.redriveFirst(ctx, q, limit)
	}
	for len(ids) > 0 {
		n := min(sweepChunk, len(ids))
		chunk := make([]position, n)
		for i := range chunk {
			chunk[i].id = ids[i]
		}
		did, err := e.redriveEach(ctx, q, chunk)
		total.Redriven += did
		if err != nil {
			return total, err
		}
		total.Skipped += int64(n) - did
		ids = ids[n:]
	}
	return total, nil
}

// redriveFirst redrives what was dead when it began, in order of death.
func (e *Engine) redriveFirst(ctx context.Context, q *queue, limit int) (total engine.Redriven, err error) {
	s := &sweep{q: q, kind: kindDead}
	if err := e.survey(ctx, "redrive", q, s); err != nil || q == nil {
		return total, err
	}
	for limit > 0 {
		var chunk []position
		var did int64
		err := e.do(ctx, "redrive", func(now clock, p *pending) (err error) {
			if chunk, err = s.scan(min(limit, sweepChunk)); err != nil || len(chunk) == 0 {
				return err
			}
			did, err = q.redriveEach(now, p, chunk)
			return err
		})
		if err != nil {
			return total, err
		}
		if len(chunk) == 0 {
			break
		}
		s.from = chunk[len(chunk)-1].after()
		total.Redriven += did
		total.Skipped += int64(len(chunk)) - did
		limit -= len(chunk)
	}
	return total, nil
}

func (e *Engine) redriveEach(ctx context.Context, q *queue, chunk []position) (int64, error) {
	var did int64
	err := e.do(ctx, "redrive", func(now clock, p *pending) (err error) {
		if q != nil {
			did, err = q.redriveEach(now, p, chunk)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return did, nil
}

func (q *queue) redriveEach(now clock, p *pending, chunk []position) (did int64, err error) {
	err = q.changeEach(now, p, chunk, func(c *change, at position) error {
		done, err := c.redrive(at.id)
		if done {
			did++
		}
		return err
	})
	return did, err
}

// redrive makes one dead message ready, unless it is not there, cannot be read or its
// key is held.
func (c *change) redrive(id engine.ID) (bool, error) {
	if id == 0 {
		return false, nil
	}
	if l, err := c.leased(id); err != nil || l != nil {
		return false, err
	}
	r, err := c.message(id)
	if isDamage(err) {
		c.q.e.damaged(c.q, id, err)
		return false, nil
	}
	if err != nil || r == nil || !r.dead || c.q.decayed(r, c.now) {
		return false, err
	}
	if r.key != "" {
		ref, err := c.holder(r.key)
		if err != nil || ref.id != 0 {
			return false, err
		}
		if err := c.forget(ref.memory); err != nil {
			return false, err
		}
	}
	if err := c.exhume(r); err != nil {
		return false, err
	}
	r.due, r.expires, r.attempt, r.lapsed = c.now.ms, never, 0, false
	return true, c.wait(r)
}
