package diskengine

import (
	"errors"
	"math"
	"time"
)

const (
	// tidyEvery is how often the loader looks at all queues.
	tidyEvery = 10 * time.Second

	// forgetAfter is after how many rounds without a call an empty queue is
	// forgotten.
	forgetAfter = 6
)

// tidy looks at all queues for what no call will see to soon: it reads ahead where
// nobody asks, ends leases that are over, has dropped what is over, closes iterators
// that nobody needs, and forgets queues that hold nothing.
func (e *Engine) tidy() {
	if e.store.failed() != nil {
		return
	}
	now := e.now()
	for _, q := range e.queues() {
		select {
		case <-e.done:
			return
		default:
		}
		q.mu.Lock()
		err := q.names.tidy()
		if q.wantsLoader(now.ms) || q.leases.late(now.ms) || q.owes(now) {
			e.kick(q)
		}
		q.idle++
		forget := q.idle > forgetAfter && q.vacant(now.ms)
		q.mu.Unlock()
		if forget {
			err = errors.Join(err, e.forget(q))
		}
		if err != nil {
			e.log.Error("tarry disk: a queue could not be looked after", "queue", q.name, "error", err)
		}
	}
}

// vacant reports whether a queue holds nothing and owes nothing.
func (q *queue) vacant(now int64) bool {
	return !q.gone && !q.kept && q.counts == (counts{}) && q.rules == nil && q.near.len() == 0 && len(q.leases.byID) == 0 &&
		!q.paused(now) && q.expired == 0 && q.died == 0 && !q.loading && q.seq <= q.e.store.durable.Load()
}

// forget forgets a queue that is vacant, in memory and on disk. Whoever has it at
// hand finds it gone: that is an empty queue to all but those who put something into
// it, who make a new one. The number is not used again: the queue with the greatest
// one stays.
func (e *Engine) forget(q *queue) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.vacant(e.now().ms) {
		return nil
	}
	for _, kind := range []byte{kindMessage, kindKey} {
		head := appendHead(nil, kind, q.num)
		if err := scan(e.store.db, head, upperBound(head), func(_, _ []byte) (bool, error) {
			q.kept = true // damage left something behind, which can be cancelled by its id
			return false, nil
		}); err != nil || q.kept {
			return err
		}
	}
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	if q.num == e.lastQueue {
		return nil
	}
	b := e.store.db.NewBatch()
	defer b.Close()
	err := b.Delete(append([]byte{kindQueue}, q.name...), nil)
	for _, kind := range []byte{kindCounts, kindFinished, kindMark, kindPause} {
		err = errors.Join(err, b.Delete(appendHead(nil, kind, q.num), nil))
	}
	err = errors.Join(err, q.deleteMinutes(b, math.MinInt64, math.MaxInt64))
	if err == nil {
		err = e.store.applyLazily(b)
	}
	if err != nil {
		return err
	}
	delete(e.byName, q.name)
	delete(e.byNumber, q.num)
	q.gone = true
	return q.names.close()
}
