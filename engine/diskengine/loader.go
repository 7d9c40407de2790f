package diskengine

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	horizon   = 60_000       // how far ahead of now memory reaches at least, in milliseconds
	ahead     = 5 * horizon  // how far ahead the loader reads, as long as there is room
	loadChunk = 4096         // due entries read at a time
	farChunk  = 256          // those read to learn what comes next when that lies far ahead
	farFull   = 4 * farChunk // entries in memory beyond which none lies far ahead

	// nearRoom is how many entries the loader leaves in memory at most, so that
	// pushes find room and do not at once evict what was read.
	nearRoom = nearFull * 3 / 4

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
		} else if !op.taken {
			q.near.removeAt(op.position)
		}
		return
	}
	if q.loading && len(q.journal) <= journalMost {
		q.journal = append(q.journal, op)
	}
}

// whole reports whether memory holds all that waits.
func (q *queue) whole() bool { return int64(q.near.len()) == q.counts.waiting }

// whole is that of the queue as the change leaves it, which has taken some out of memory.
func (c *change) whole() bool { return int64(c.q.near.len()) == c.q.counts.waiting+c.counts.waiting }

// wantsLoader reports whether there is something to read ahead, and room for it.
func (q *queue) wantsLoader(now int64) bool {
	return !q.whole() && q.loadedTo.at < now+horizon && q.near.len()+q.e.chunk <= nearRoom
}

// readDue returns the due entries from one position up to but without another, at
// most n, and the position up to which that is all.
func (q *queue) readDue(r pebble.Reader, from, to position, n int) ([]found, position, error) {
	lower, upper := timeKey(nil, kindDue, q.num, from), timeKey(nil, kindDue, q.num, to)
	chunk := make([]found, 0, n)
	err := scan(r, lower, upper, func(k, v []byte) (bool, error) {
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
		return chunk, to, err
	}
	return chunk, chunk[n-1].after(), err
}

// fill makes sure, under the lock, that memory holds the whole window of what is
// due, and the next message to become due if there is one.
func (q *queue) fill(now int64) error {
	for q.short(now) || !q.whole() && q.near.len() == 0 {
		to, n := position{at: now + ahead}, q.e.chunk
		far := !q.loadedTo.less(to)
		if far {
			to, n = lastPosition, min(farChunk, n)
		}
		chunk, end, err := q.readDue(q.e.store.db, q.loadedTo, to, n)
		if err != nil {
			return err
		}
		if far {
			if len(chunk) == 0 { // what else waits is damaged and was passed over
				return nil
			}
			end = chunk[len(chunk)-1].after()
		}
		for _, f := range chunk {
			q.near.put(f.position, f.priority, q.seq)
		}
		q.moveLoadedTo(end)
	}
	return nil
}

// short reports whether more is due than memory holds, and less than the window in
// memory. All that memory holds is due then.
func (q *queue) short(now int64) bool {
	return !q.whole() && q.loadedTo.at <= now && q.near.len() < window
}

// reads reports whether fill may have something to do when what is ready has been taken.
func (q *queue) reads(now int64) bool {
	return !q.whole() && (q.loadedTo.at <= now || q.near.len() == len(q.near.ready))
}

// prepare does what fill does of what is due, as far as that goes without holding
// the lock while reading.
func (q *queue) prepare(now int64) error {
	for range window / q.e.chunk {
		r, ok := q.beginLoad(now, (*queue).short)
		if !ok {
			return nil
		}
		r.err = r.read()
		if _, err := q.endLoad(r); err != nil {
			return err
		}
	}
	return nil
}

// load reads one chunk without holding the lock. It reports whether there is more
// to do.
func (q *queue) load(now int64) (bool, error) {
	r, ok := q.beginLoad(now, (*queue).wantsLoader)
	if !ok {
		return false, nil
	}
	r.err = r.read()
	return q.endLoad(r)
}

// reading is one chunk on its way into memory. It has three steps: under the lock
// it is noted where to read from and a journal is begun; the chunk is read; under
// the lock the journal is played over the chunk, which makes of it what the disk
// holds now, and that goes to memory.
type reading struct {
	q     *queue
	from  position
	to    position
	loads uint64 // as they were when it began
	chunk []found
	end   position
	err   error
}

// beginLoad begins a reading unless another is under way or the queue does not want
// one.
func (q *queue) beginLoad(now int64, wants func(*queue, int64) bool) (*reading, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.loading || !wants(q, now) {
		return nil, false
	}
	q.loading, q.journal = true, nil
	return &reading{q: q, from: q.loadedTo, to: position{at: now + ahead}, loads: q.loads}, true
}

func (r *reading) read() (err error) {
	r.chunk, r.end, err = r.q.readDue(r.q.e.store.db, r.from, r.to, r.q.e.chunk)
	return err
}

func (q *queue) endLoad(r *reading) (more bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	journal := q.journal
	q.loading, q.journal = false, nil
	if r.err != nil {
		return false, r.err
	}
	if r.loads != q.loads || len(journal) > journalMost {
		return true, nil // memory was emptied or filled meanwhile: read again
	}
	for _, f := range r.replay(journal) {
		q.near.put(f.position, f.priority, q.seq)
	}
	q.moveLoadedTo(r.end)
	return true, nil
}

// replay plays the changes of due order since the reading began over what was read.
// Whether the chunk saw a change or not does not matter: the last one of a position
// decides. A message that went elsewhere is none of the chunk's affair: where it
// went lies either in the journal too or in memory already.
func (r *reading) replay(journal []nearOp) []found {
	if len(journal) == 0 {
		return r.chunk
	}
	last := make(map[position]nearOp, len(journal))
	for _, op := range journal {
		if op.less(r.end) {
			last[op.position] = op
		}
	}
	stays := r.chunk[:0]
	for _, f := range r.chunk {
		if _, changed := last[f.position]; !changed {
			stays = append(stays, f)
		}
	}
	for _, op := range last {
		if op.put {
			stays = append(stays, found{op.position, op.priority})
		}
	}
	return stays
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
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		work := e.wake
		q := e.nextWork()
		if q != nil {
			work = always
		}
		select {
		case <-e.done:
			return
		case <-e.store.flushed:
			if err := e.closeNames(); err != nil {
				e.log.Error("tarry disk: an iterator failed", "error", err)
			}
		case <-tidy.C:
			e.tidy()
		case <-work:
		}
		if q != nil {
			e.lookAfter(q)
		}
	}
}

// always is a channel from which can always be received.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (e *Engine) nextWork() (q *queue) {
	e.workMu.Lock()
	defer e.workMu.Unlock()
	if len(e.work) > 0 {
		q, e.work = e.work[0], e.work[1:]
	}
	return q
}

func (e *Engine) lookAfter(q *queue) {
	q.mu.Lock()
	q.kicked = false
	tombs, gone := q.removed >= markAfter, q.gone
	q.mu.Unlock()
	if gone {
		return
	}
	more, owes := false, false
	now := e.now()
	err := q.lapseLate(now)
	if err == nil && tombs {
		err = q.raiseMark()
	}
	if err == nil {
		more, err = q.load(now.ms)
	}
	if err == nil {
		owes, err = q.dropLate(now)
	}
	if err != nil {
		e.log.Error("tarry disk: looking ahead failed; what is due is read when asked for", "queue", q.name, "error", err)
		return
	}
	if more || owes {
		q.mu.Lock()
		e.kick(q)
		q.mu.Unlock()
	}
}
