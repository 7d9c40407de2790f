package diskengine

import (
	"context"
	"errors"
)

// dropChunk is how many memories, and how many of the dead, are dropped in one batch, and
// so while others wait for the queue's lock.
const dropChunk = 256

// owes reports whether something is over that has not been dropped.
func (q *queue) owes(now clock) bool { return q.forgettable(now) || q.buries(now) }

// forgettable reports whether memories may be over.
func (q *queue) forgettable(now clock) bool { return q.counts.finished > 0 && q.forgets <= now.ms }

// tidyUp drops a chunk of what is over, unless the loader is at it.
func (q *queue) tidyUp(now clock, p *pending) error {
	if q.behind || !q.owes(now) {
		return nil
	}
	some, err := q.drop(now, p)
	if q.behind = isDamage(err) || some && q.owes(now); q.behind {
		q.e.kick(q)
		return nil // the loader says what is wrong
	}
	return err
}

// drop drops a chunk of what is over, in one batch, and reports whether there was some.
func (q *queue) drop(now clock, p *pending) (some bool, err error) {
	c, buries := q.begin(now, dropChunk), q.buries(now)
	if q.forgettable(now) {
		err = c.forgetOver(dropChunk)
	}
	var graves position
	if err == nil && buries {
		graves, err = c.dropDead(dropChunk)
	}
	if err != nil {
		c.abandon()
		return false, err
	}
	some = c.wrote
	forgets := c.forgets
	if err := c.commit(p); err != nil {
		return false, err
	}
	if q.forgets = forgets; buries { // also when nothing was dropped
		q.rules.graves = graves
	}
	return some, nil
}

// dropLate drops a chunk of what is over on behalf of nobody, and reports whether there
// is more.
func (q *queue) dropLate(now clock) (more bool, err error) {
	err = q.forNobody(func(p *pending) error {
		if q.behind = q.owes(now); !q.behind {
			return nil
		}
		some, err := q.drop(now, p)
		more = some && q.owes(now)
		q.behind = isDamage(err) || more
		return err
	})
	return more, err
}

// dropAll brings a queue up to date, which is locked, and drops all that is over. Others
// get at the queue in between.
func (q *queue) dropAll(ctx context.Context, now clock, p *pending) (clock, error) {
	for {
		now, err := q.catchUp(now, p)
		some := false
		if err = errors.Join(err, ctx.Err()); err == nil && q.owes(now) {
			some, err = q.drop(now, p)
		}
		if isDamage(err) {
			err = nil
		}
		if err != nil || !some {
			return now, err
		}
		q.mu.Unlock()
		if len(p.batches) >= lapseMost/lapseChunk {
			err = p.wait() // batches take up memory until they are synced
		}
		if q.mu.Lock(); err != nil {
			return now, err
		}
	}
}

// forNobody has a queue, which is locked meanwhile, do what no call asks for.
func (q *queue) forNobody(fn func(p *pending) error) error {
	p := pending{store: q.e.store}
	err := func() error {
		q.mu.Lock()
		defer q.mu.Unlock()
		return fn(&p)
	}()
	if len(p.batches) > 0 {
		err = errors.Join(err, p.wait())
	}
	q.e.watchers.Hint(p.hints...)
	return err
}
