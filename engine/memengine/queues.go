package memengine

import "context"

// tidyLeast is the number of queues below which empty ones are kept.
const tidyLeast = 1024

// with locks and refreshes a queue and runs do on it. Without create it returns false for an
// unknown queue. Afterwards it sends the hint if do made one necessary.
func (e *Engine) with(name string, create bool, do func(*queue)) bool {
	for {
		q := e.queue(name, create)
		if q == nil {
			return false
		}
		if e.visit(q, do) {
			return true
		}
	}
}

// call is with, as a call of its own. An unknown queue is no error.
func (e *Engine) call(ctx context.Context, op, name string, create bool, do func(*queue)) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	e.with(name, create, do)
	return nil
}

// stride is how many items of a call run before the queue's lock is released for others.
const stride = 1000

// visit is like with, for a queue already found. It returns false if the queue was retired
// meanwhile.
func (e *Engine) visit(q *queue, do func(*queue)) bool {
	q.mu.Lock()
	if q.retired {
		q.mu.Unlock()
		return false
	}
	q.refresh()
	do(q)
	hint := q.takeHint()
	q.mu.Unlock()
	if hint {
		e.hint(q.name)
	}
	return true
}

// refresh reads the clock and advances the queue. It reads the clock under the lock, so
// that time does not run backwards between calls.
func (q *queue) refresh() {
	was := q.ms
	q.now = q.engine.now()
	q.ms = q.now.UnixMilli()
	if q.ms < was {
		q.turnBack()
	}
	if q.paused && q.until <= q.ms {
		q.paused = false
	}
	q.advance()
}

// takeHint reports whether to notify the watchers, and resets the hint.
func (q *queue) takeHint() bool {
	hint := q.hint || q.next() < q.told
	q.hint = false
	return hint
}

// queue returns the queue with a name; with create it makes a missing one.
func (e *Engine) queue(name string, create bool) *queue {
	e.mu.RLock()
	q := e.queues[name]
	e.mu.RUnlock()
	if q != nil || !create {
		return q
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if q = e.queues[name]; q != nil {
		return q
	}
	if len(e.queues) >= e.tidyAt {
		e.tidy()
	}
	if len(e.free) == 0 {
		e.free = append(e.free, uint32(len(e.numbered)))
		e.numbered = append(e.numbered, nil)
	}
	last := len(e.free) - 1
	at := e.free[last]
	e.free = e.free[:last]
	e.lastQueue++
	q = newQueue(e, name, e.lastQueue<<32|uint64(at))
	e.queues[name] = q
	e.names.Add(name)
	e.numbered[at] = q
	return q
}

// byNumber returns the queue with the number of a token; nil: it is gone.
func (e *Engine) byNumber(n uint64) *queue {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if at := uint32(n); at < uint32(len(e.numbered)) && e.numbered[at] != nil && e.numbered[at].number == n {
		return e.numbered[at]
	}
	return nil
}

// tidy removes empty queues. Otherwise programs with a queue for each user or order would
// fill the memory with names. Called with mu held.
func (e *Engine) tidy() {
	for name, q := range e.queues {
		if !q.mu.TryLock() {
			continue // in use: next time
		}
		if q.finished != nil || q.history != nil {
			q.refresh() // they may be over
		}
		if q.empty() {
			q.retired = true
			delete(e.queues, name)
			e.names.Remove(name)
			e.numbered[uint32(q.number)] = nil
			e.free = append(e.free, uint32(q.number))
		}
		q.mu.Unlock()
	}
	e.tidyAt = max(tidyLeast, 2*len(e.queues))
}
