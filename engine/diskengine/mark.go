package diskengine

import "errors"

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
	if first, end := minuteOf(q.mark.at), minuteOf(mark.at); first < end {
		err = errors.Join(err, b.DeleteRange(minuteKey(nil, q.num, first), minuteKey(nil, q.num, end), nil))
	}
	if err != nil {
		return err
	}
	if err := q.e.store.applyLazily(b); err != nil {
		return err
	}
	q.mark = mark
	return nil
}
