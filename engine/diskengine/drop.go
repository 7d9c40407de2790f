package diskengine

import "errors"

// dropChunk is how much that is over is dropped in one batch, and so while others wait
// for the queue's lock.
const dropChunk = 256

// owes reports whether something is over that has not been dropped.
func (q *queue) owes(now clock) bool {
	return q.counts.finished > 0 && q.forgets <= now.ms
}

// tidyUp drops a chunk of what is over, unless the loader is about to.
func (q *queue) tidyUp(now clock, p *pending) error {
	if q.behind || !q.owes(now) {
		return nil
	}
	err := q.drop(now, p)
	if q.behind = err != nil || q.owes(now); q.behind {
		q.e.kick(q)
	}
	if isDamage(err) {
		return nil // the loader says so
	}
	return err
}

// drop drops a chunk of what is over, in one batch.
func (q *queue) drop(now clock, p *pending) error {
	c := q.begin(now, dropChunk)
	if _, err := c.forgetOver(dropChunk); err != nil {
		c.abandon()
		return err
	}
	return c.commit(p)
}

// dropLate drops a chunk of what is over on behalf of nobody, and reports whether there
// is more.
func (q *queue) dropLate(now clock) (more bool, err error) {
	err = q.forNobody(func(p *pending) error {
		if q.behind = q.owes(now); !q.behind {
			return nil
		}
		err := q.drop(now, p)
		more = err == nil && q.owes(now)
		q.behind = err != nil || more
		return err
	})
	return more, err
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
