package sqlengine

import "sync"

// told is until when this process was told that queues have nothing: what comes sooner is
// hinted.
type told struct {
	mu     sync.Mutex
	until  map[int64]int64 // never where it was not told, or nothing is known to come
	asking map[int64]int   // leases that have not answered: what they have seen nobody knows
	pauses map[int64]int64 // how soon to look again where others hold all there is
	spares map[int64]int   // how many more ranked ones are looked at where others hold some
}

// spareLeast is how many more are looked at, at first.
const spareLeast = 64

func (t *told) spare(queue int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spares[queue]
}

// passOver has more looked at of what is due of a queue, of which others hold some.
func (t *told) passOver(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spares[queue] = min(max(spareLeast, 4*t.spares[queue]), window)
}

// freed ends passOver.
func (t *told) freed(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.spares, queue)
}

// blocked tells how soon to look again for rows that others hold; still: nothing else was
// met there.
func (t *told) blocked(queue int64, still bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !still {
		delete(t.pauses, queue)
		return retryLeast
	}
	pause := max(retryLeast, t.pauses[queue])
	t.pauses[queue] = min(2*pause, retryMost)
	return pause
}

// ask begins to ask for what queues have.
func (t *told) ask(queues []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		t.asking[q]++
	}
}

// tell ends it: next is when there may be something. It reports whether somebody else was
// told of a later instant, and would come too late.
func (t *told) tell(queue, next int64) (late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.until[queue]
	t.until[queue] = next
	return known && next < was
}

func (t *told) answered(queues []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if t.asking[q]--; t.asking[q] == 0 {
			delete(t.asking, q)
		}
	}
}

// expects reports whether in all of queues, one at least, something was told to be due by an
// instant.
func (t *told) expects(queues []int64, ms int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if until, known := t.until[q]; !known || until > ms {
			return false
		}
	}
	return len(queues) > 0
}

// sooner reports whether an instant is sooner than was told, or than somebody who asks
// may have seen.
func (t *told) sooner(queue, at int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking[queue] > 0 {
		return true
	}
	until, known := t.until[queue]
	return !known || at < until
}
