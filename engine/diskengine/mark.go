package diskengine

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// markAfter is how many removed due entries make it worth raising the mark.
const markAfter = 8192

// raiseMark moves the mark up to the least due entry, so that the tombstones
// below it are never walked.
func (q *queue) raiseMark() error {
	from := q.beginMark()
	if from == lastPosition {
		return nil
	}
	first, _, err := q.readDue(q.e.store.db, from, lastPosition, 1)
	if err != nil {
		return err
	}
	return q.endMark(first)
}

// beginMark begins to note the least that is put while the least entry is looked
// for, and returns where to look.
func (q *queue) beginMark() position {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lowest, q.removed = lastPosition, 0
	return q.mark
}

// endMark moves the mark, given the least entry that was found, if any.
func (q *queue) endMark(first []found) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return nil
	}
	mark := q.lowest
	if len(first) > 0 && first[0].less(mark) {
		mark = first[0].position
	}
	if mark == lastPosition { // the queue is empty: what comes will hardly be due before now
		mark = position{at: q.e.now().ms}
	}
	if !q.mark.less(mark) {
		return nil
	}
	b := q.e.store.db.NewBatch()
	defer b.Close()
	err := b.Set(appendHead(nil, kindMark, q.num), mark.append(nil), nil)
	// Nothing waits below the mark, so all counts there are zero.
	err = errors.Join(err, q.deleteMinutes(b, minuteOf(q.mark.at), minuteOf(mark.at)))
	if err != nil {
		return err
	}
	if err := q.e.store.applyLazily(b); err != nil {
		return err
	}
	q.mark = mark
	return nil
}

// minutesMost is how many counts are deleted one by one.
const minutesMost = 256

// deleteMinutes deletes the counts of the minutes from first up to but without end: few
// one by one, as a range that is deleted costs whoever reads until it is flushed.
func (q *queue) deleteMinutes(b *pebble.Batch, first, end int64) error {
	if first >= end {
		return nil
	}
	lower, upper, n := minuteKey(nil, q.num, first), minuteKey(nil, q.num, end), 0
	err := scan(q.e.store.db, lower, upper, func(k, _ []byte) (bool, error) {
		n++
		return n < minutesMost, b.Delete(k, nil)
	})
	if err == nil && n == minutesMost {
		err = b.DeleteRange(lower, upper, nil)
	}
	return err
}
