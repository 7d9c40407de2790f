package diskengine

import (
	"errors"
)

const (
	horizon   = 60_000 // how far ahead of now the loader reads, in milliseconds
	loadChunk = 4096   // due entries read at a time

	// nearRoom is how many entries the loader leaves in memory at most, so that
	// pushes find room and do not at once evict what was read.
	nearRoom = nearFull * 3 / 4

	// markAfter is how many removed due entries make it worth raising the mark.
	markAfter = 8192

	// journalMost is how much may change while a chunk is read before the chunk is
	// thrown away.
	journalMost = 1 << 16
)

// found is a due entry as read from disk.
type found struct {
	position
	priority uint32
}

// moveLoadedTo changes what memory claims to hold.
func (q *queue) moveLoadedTo(p position) {
	q.loadedTo = p
	q.loads++
}

// track keeps memory in step with a change of due order.
func (q *queue) track(op nearOp, seq uint64) {
	if op.put {
		if op.less(q.lowest) {
			q.lowest = op.position
		}
	} else if q.removed++; q.removed == markAfter {
		q.e.kick(q)
	}
	if op.less(q.loadedTo) {
		if op.put {
			q.near.put(op.position, op.priority, seq)
		} else {
			q.near.remove(op.id)
		}
		return
	}
	if q.loading && len(q.journal) <= journalMost {
		q.journal = append(q.journal, op)
	}
}

// wantsLoader reports whether there is something to read ahead, and room for it.
func (q *queue) wantsLoader(now int64) bool {
	return q.loadedTo.at < now+horizon && q.near.len()+loadChunk <= nearRoom
}

// read returns the due entries from a position on, at most n, and the position up
// to which that is all.
func (q *queue) read(from position, n int) ([]found, position, error) {
	lower := timeKey(nil, kindDue, q.num, from)
	upper := upperBound(appendHead(nil, kindDue, q.num))
	chunk := make([]found, 0, n)
	err := scan(q.e.store.db, lower, upper, func(k, v []byte) (bool, error) {
		_, p, err := parseTimeKey(k, kindDue)
		if err != nil {
			return false, err
		}
		priority, err := parsePriority(v)
		if err != nil {
			return false, err
		}
		chunk = append(chunk, found{p, priority})
		return len(chunk) < n, nil
	})
	if len(chunk) < n {
		return chunk, lastPosition, err
	}
	return chunk, chunk[n-1].after(), err
}

// fill makes sure, under the lock, that memory holds the whole window of what is
// due, and the next message to become due if there is one.
func (q *queue) fill(now int64) error {
	for q.loadedTo != lastPosition &&
		(q.loadedTo.at <= now && len(q.near.ready) < window || q.near.len() == 0) {
		chunk, end, err := q.read(q.loadedTo, loadChunk)
		if err != nil {
			return err
		}
		for _, f := range chunk {
			q.near.put(f.position, f.priority, q.seq)
		}
		q.moveLoadedTo(end)
	}
	return nil
}

// load reads one chunk without holding the lock. It reports whether there is more
// to do.
func (q *queue) load(now int64) (bool, error) {
	q.mu.Lock()
	if !q.wantsLoader(now) {
		q.mu.Unlock()
		return false, nil
	}
	from, loads := q.loadedTo, q.loads
	q.loading, q.journal = true, nil
	q.mu.Unlock()

	chunk, end, err := q.read(from, loadChunk)

	q.mu.Lock()
	defer q.mu.Unlock()
	journal := q.journal
	q.loading, q.journal = false, nil
	if err != nil {
		return false, err
	}
	if loads != q.loads || len(journal) > journalMost {
		return true, nil // memory was emptied or filled meanwhile: read again
	}
	for _, f := range chunk {
		q.near.put(f.position, f.priority, q.seq)
	}
	q.moveLoadedTo(end)
	// Whether the chunk saw a change or not, playing the journal over it makes it
	// right.
	for _, op := range journal {
		switch {
		case !op.less(end):
		case op.put:
			q.near.put(op.position, op.priority, q.seq)
		default:
			q.near.remove(op.id)
		}
	}
	return true, nil
}

// raiseMark moves the mark up to the least due entry, so that the tombstones
// below it are never walked.
func (q *queue) raiseMark() error {
	q.mu.Lock()
	from := q.mark
	q.lowest, q.removed = lastPosition, 0
	q.mu.Unlock()
	if from == lastPosition {
		return nil
	}

	first, _, err := q.read(from, 1)
	if err != nil {
		return err
	}

	q.mu.Lock()
	defer q.mu.Unlock()
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
	err = b.Set(appendHead(nil, kindMark, q.num), mark.append(nil), nil)
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

// kick asks the loader to look after q. It does not block.
func (e *Engine) kick(q *queue) {
	if q.kicked {
		return
	}
	q.kicked = true
	e.workMu.Lock()
	e.work = append(e.work, q)
	e.workMu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// runLoader looks after the queues that asked for it, one chunk each in turn, so
// that a huge queue does not keep the others waiting.
func (e *Engine) runLoader() {
	for {
		e.workMu.Lock()
		var q *queue
		if len(e.work) > 0 {
			q, e.work = e.work[0], e.work[1:]
		}
		e.workMu.Unlock()
		if q == nil {
			select {
			case <-e.wake:
				continue
			case <-e.store.flushed:
				if err := e.closeNames(); err != nil {
					e.log.Error("tarry disk: an iterator failed", "error", err)
				}
				continue
			case <-e.done:
				return
			}
		}
		select {
		case <-e.done:
			return
		default:
		}
		e.lookAfter(q)
	}
}

func (e *Engine) lookAfter(q *queue) {
	q.mu.Lock()
	q.kicked = false
	tombs := q.removed >= markAfter
	q.mu.Unlock()
	more := false
	var err error
	if tombs {
		err = q.raiseMark()
	}
	if err == nil {
		more, err = q.load(e.now().ms)
	}
	if err != nil {
		e.log.Error("tarry disk: reading ahead failed; what is due is read when asked for", "queue", q.name, "error", err)
		return
	}
	if more {
		q.mu.Lock()
		e.kick(q)
		q.mu.Unlock()
	}
}
