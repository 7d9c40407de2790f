package sqlengine

import (
	"sync"
	"time"
)

// answers records what leases of this process were told about queues.
type answers struct {
	mu     sync.Mutex
	queues map[int64]*answer
}

type answer struct {
	known     bool      // a lease was told that nothing is due
	until     int64     // until then; a hint follows if something comes sooner
	due       time.Time // until by the clock of this process
	asking    int       // number of leases under way: what they see is unknown
	pause     int64     // how soon to look again if others have locked everything due, in milliseconds
	spareRows int       // how many more ranked rows to look at if others have locked some
}

// of returns what is known about a queue; the caller has locked answers.
func (t *answers) of(queue int64) *answer {
	x := t.queues[queue]
	if x == nil {
		if t.queues == nil {
			t.queues = make(map[int64]*answer)
		}
		x = new(answer)
		t.queues[queue] = x
	}
	return x
}

// spareLeast is the first value of spareRows.
const spareLeast = 64

func (t *answers) spareRows(queue int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(queue).spareRows
}

// growSpare raises spareRows, since others have locked some of a queue's due rows.
func (t *answers) growSpare(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	x.spareRows = min(max(spareLeast, 4*x.spareRows), window)
}

// resetSpare resets spareRows.
func (t *answers) resetSpare(queue int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(queue).spareRows = 0
}

// blocked returns how soon to look again for locked rows, in milliseconds. still: this look
// found only locked rows.
func (t *answers) blocked(queue int64, still bool) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	pause := max(retryLeast, x.pause)
	if x.pause = min(2*pause, retryMost); !still {
		pause, x.pause = retryLeast, 0
	}
	return pause
}

// ask counts the leases under way. by is 1 when one begins and -1 when it ends.
func (t *answers) ask(queues []int64, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		t.of(q).asking += by
	}
}

// tell records when a lease is told that there may be something next. It reports whether
// another lease was told of a later instant, and so would come too late.
func (t *answers) tell(queue, next int64, due time.Time) (late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	late = x.known && next < x.until
	x.known, x.until, x.due = true, next, due
	return late
}

// expects reports whether leases were told that something is due by now in each of the
// queues. There must be at least one.
func (t *answers) expects(queues []int64) bool {
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

// sooner reports whether an instant is before the one that leases were told, or may be.
func (t *answers) sooner(queue, at int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.of(queue)
	return x.asking > 0 || !x.known || at < x.until
}
