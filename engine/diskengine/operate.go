package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// Pause stops leasing and claiming of a queue, for good when d is 0.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	return e.do(ctx, "pause", func(now clock, p *pending) error {
		q, err := e.makeQueue(name)
		if err != nil {
			return err
		}
		until := int64(forGood)
		if d > 0 {
			until = now.after(d)
		}
		return q.setPause(now, p, until)
	})
}

// Resume ends a pause.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.do(ctx, "resume", func(now clock, p *pending) error {
		if q := e.queue(name); q != nil {
			return q.setPause(now, p, 0)
		}
		return nil
	})
}

// setPause writes until when a queue is paused; 0 ends the pause.
func (q *queue) setPause(now clock, p *pending, until int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.e.store.db.NewBatch()
	key := appendHead(nil, kindPause, q.num)
	var err error
	if until == 0 {
		err = b.Delete(key, nil)
	} else {
		err = b.Set(key, appendTime(nil, until), nil)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	seq, err := q.e.store.apply(b)
	if err != nil {
		return err
	}
	p.batches = append(p.batches, applied{b, seq})
	q.seq, q.pause = seq, until
	q.told = now.ms
	p.hints = append(p.hints, q.name) // it may end sooner than was said
	return nil
}

// operateChunk is how many messages purge and redrive change in one batch.
const operateChunk = 500

// Purge removes what was scheduled or ready when it began, and with dead the dead
// ones too, in chunks that are durable one by one.
func (e *Engine) Purge(ctx context.Context, name string, dead bool) (int64, error) {
	var n int64
	q, snap, err := e.survey(ctx, "purge", name)
	if err != nil || q == nil {
		return 0, err
	}
	defer snap.Close()
	upper := func(kind byte) []byte { return upperBound(appendHead(nil, kind, q.num)) }
	err = q.inChunks(ctx, snap, kindDue, timeKey(nil, kindDue, q.num, q.markNow()), upper(kindDue), func(c *change, at position) error {
		r, err := c.message(at.id)
		switch {
		case errors.Is(err, errValue):
			n++
			return errors.Join(c.dequeue(at), c.remove(at.id, "", true))
		case err != nil || r == nil || r.dead || c.held(at.id) != nil:
			return err
		case r.expired(c.now.ms):
			return c.expire(r)
		}
		n++
		return c.drop(r)
	})
	if err == nil && dead {
		err = q.inChunks(ctx, snap, kindDead, appendHead(nil, kindDead, q.num), upper(kindDead), func(c *change, at position) error {
			r, err := c.message(at.id)
			if err != nil || r == nil || !r.dead {
				return err
			}
			n++
			return errors.Join(c.exhume(r), c.remove(r.id, "", r.apart))
		})
	}
	return n, err
}

// survey brings a queue up to date and takes a snapshot of what it holds now. The
// queue is nil when there is none; else the caller closes the snapshot and leaves.
func (e *Engine) survey(ctx context.Context, op, name string) (q *queue, snap *pebble.Snapshot, err error) {
	err = e.do(ctx, op, func(now clock, p *pending) error {
		if q = e.queue(name); q == nil {
			return nil
		}
		defer q.mu.Unlock()
		if _, err := q.lockWhole(ctx, now, p); err != nil {
			return err
		}
		p.see(q)
		snap = e.store.db.NewSnapshot()
		return nil
	})
	return q, snap, err
}

// inChunks calls fn for each entry of an order as a snapshot shows it, in batches.
// fn looks again, since the message may have changed.
func (q *queue) inChunks(ctx context.Context, snap *pebble.Snapshot, kind byte, lower, upper []byte, fn func(c *change, at position) error) error {
	for string(lower) < string(upper) {
		var chunk []position
		err := q.e.do(ctx, "operate", func(now clock, p *pending) error {
			err := scan(snap, lower, upper, func(k, _ []byte) (bool, error) {
				_, at, err := parseTimeKey(k, kind)
				chunk = append(chunk, at)
				return len(chunk) < operateChunk, err
			})
			if err != nil || len(chunk) == 0 {
				return err
			}
			return q.changeEach(now, p, chunk, fn)
		})
		if err != nil || len(chunk) < operateChunk {
			return err
		}
		lower = timeKey(nil, kind, q.num, chunk[len(chunk)-1].after())
	}
	return nil
}

// changeEach makes one batch of what fn does to each message.
func (q *queue) changeEach(now clock, p *pending, chunk []position, fn func(c *change, at position) error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, err := q.catchUp(now, p)
	if err != nil {
		return err
	}
	c := q.begin(now, len(chunk))
	for _, at := range chunk {
		if err := fn(c, at); err != nil {
			c.abandon()
			return err
		}
	}
	return c.commit(p)
}

// Redrive makes dead messages ready again: those with the ids given, else the
// first by death.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (engine.Redriven, error) {
	var total engine.Redriven
	q, snap, err := e.survey(ctx, "redrive", name)
	if err != nil || q == nil {
		total.Skipped = int64(len(ids))
		return total, err
	}
	defer snap.Close()
	all := len(ids) == 0
	redrive := func(c *change, at position) error {
		if all && limit > 0 && total.Redriven+total.Skipped >= int64(limit) {
			return nil
		}
		done, err := c.redrive(at.id)
		if done {
			total.Redriven++
		} else if err == nil {
			total.Skipped++
		}
		return err
	}
	if all {
		upper := upperBound(appendHead(nil, kindDead, q.num))
		err = q.inChunks(ctx, snap, kindDead, appendHead(nil, kindDead, q.num), upper, redrive)
		return total, err
	}
	for len(ids) > 0 && err == nil {
		var chunk []position
		for _, id := range ids[:min(operateChunk, len(ids))] {
			chunk = append(chunk, position{id: id})
		}
		err = e.do(ctx, "redrive", func(now clock, p *pending) error { return q.changeEach(now, p, chunk, redrive) })
		ids = ids[len(chunk):]
	}
	return total, err
}

// redrive makes one dead message ready, unless it is not there or its key is held.
func (c *change) redrive(id engine.ID) (bool, error) {
	if id == 0 {
		return false, nil
	}
	if l, err := c.leased(id); err != nil || l != nil {
		return false, err
	}
	r, err := c.message(id)
	if err != nil || r == nil || !r.dead {
		return false, err
	}
	if r.key != "" {
		if ref, err := c.holder(r.key); err != nil || ref.id != 0 {
			return false, err
		}
	}
	if err := c.exhume(r); err != nil {
		return false, err
	}
	r.due, r.expires, r.attempt, r.lapsed = c.now.ms, never, 0, false
	return true, c.wait(r)
}
