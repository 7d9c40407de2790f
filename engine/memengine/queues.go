package memengine

// tidyLeast is how many queues there are before empty ones are forgotten.
const tidyLeast = 1024

// with runs do on a queue: locked, up to the present. Without create an unknown
// queue is left unknown, and with returns false. Afterwards it gives the hint
// that do may have made due.
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

// stride is how many items of a call act on a queue before it lets others in.
const stride = 1000

// visit is with for a queue at hand; false when that was retired meanwhile.
func (e *Engine) visit(q *queue, do func(*queue)) bool {
	q.mu.Lock()
	if q.retired {
		q.mu.Unlock()
		return false
	}
	q.refresh()
	do(q)
	hint := q.hinted()
	q.mu.Unlock()
	if hint {
		e.hint(q.name)
	}
	return true
}

// refresh reads the clock and brings the queue up to it. The clock is read under
// the lock, so that it does not run backwards from one call to the next.
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

// hinted says whether the watchers are to be told, and forgets it.
func (q *queue) hinted() bool {
	hint := q.hint || q.next() < q.told
	q.hint = false
	return hint
}

// queue returns the queue of a name, which create makes if there is none.
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

// byNumber returns the queue that a token names; nil: there is none any more.
func (e *Engine) byNumber(n uint64) *queue {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if at := uint32(n); at < uint32(len(e.numbered)) && e.numbered[at] != nil && e.numbered[at].number == n {
		return e.numbered[at]
	}
	return nil
}

// tidy forgets empty queues; mu is held. Programs that make a queue for each user
// or order would else fill the memory with names.
func (e *Engine) tidy() {
	for name, q := range e.queues {
		if !q.mu.TryLock() {
			continue // in use: the next time
		}
		if q.finished != nil {
			q.refresh() // its keys may be free
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
