package sqlengine

import (
	"sync"
	"time"
)

// told is what the leases of this process were told of queues.
type told struct {
	mu     sync.Mutex
	queues map[int64]*toldOf
}

type toldOf struct {
	known  bool      // a lease was told, that the queue has nothing
	until  int64     // before this; what comes sooner is hinted
	due    time.Time // the same by the clock of this process
	asking int       // leases that have not answered: nobody knows what they have seen
	pause  int64     // how soon to look again where others hold all there is
	spare  int       // how many more ranked ones are looked at where others hold some
}

// of returns what is known of a queue; the caller has locked told.
func (t *told) of(queue int64) *toldOf {
	x := t.queues[queue]
	if x == nil {
		if t.queues == nil {
			t.queues = make(map[int64]*toldOf)
		}
		x = new(toldOf)
		t.queues[queue] = x
	}
	return x
}

// spareLeast is how many more are looked at, at first.
const spareLeast = 64

func (t *told) spare(queue int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(queue).spare
}

// passOver has more looked at of what is due of a queue, of which others hold some.
func (t *told) passOver(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	x.spare = min(max(spareLeast, 4*x.spare), window)
}

// freed ends passOver.
func (t *told) freed(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(queue).spare = 0
}

// blocked tells how soon to look again for rows that others hold; still: nothing else was
// met there.
func (t *told) blocked(queue int64, still bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	pause := max(retryLeast, x.pause)
	if x.pause = min(2*pause, retryMost); !still {
		pause, x.pause = retryLeast, 0
	}
	return pause
}

// ask begins to ask for what queues have, and answered ends that: by is 1, then -1.
func (t *told) ask(queues []int64, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		t.of(q).asking += by
	}
}

// tell takes note that a lease is told when there may be something next. It reports whether
// another was told of a later instant, and would come too late.
func (t *told) tell(queue, next int64, due time.Time) (late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	late = x.known && next < x.until
	x.known, x.until, x.due = true, next, due
	return late
}

// expects reports whether in all of queues, one at least, something was told to be due by now.
func (t *told) expects(queues []int64) bool {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if x := t.of(q); !x.known || x.until == never || now.Before(x.due) {
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
	x := t.of(queue)
	return x.asking > 0 || !x.known || at < x.until
}
