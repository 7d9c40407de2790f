package sqlengine

import (
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// cache holds what this process knows about queues.
type cache struct {
	mu     sync.Mutex
	queues map[int64]*cached
}

// cached is what this process knows about a queue.
type cached struct {
	// As last seen. From the settings a call guesses whether it must lock the queue, and its
	// transaction checks the guess.
	settings *engine.Settings // nil: none is set
	revision uint64
	keeps    bool // it drops neither dead messages nor memories

	// What leases were told.
	told   bool      // that nothing is due
	until  int64     // until then; a hint follows if something comes sooner
	due    time.Time // until by the clock of this process
	asking int       // number of leases under way: what they see is unknown

	// If others have locked due rows:
	pause     int64 // how soon to look again, in milliseconds
	spareRows int   // how many more ranked rows to look at

	ranks bool // the last lease left ranked rows: the next reads them as it opens

	unreported endings // that no grant has reported yet

	history trimming

	bound  LowBound
	came   LowBound      // lower bound of what came since raiser began
	raiser *look         // the running look that will raise the bound; nil: none
	took   time.Duration // the quicker of the last two whole looks: a single one may have waited for something else
	last   time.Duration // the last whole look
	next   time.Time     // when the next whole look is due
}

// endings counts messages that expired or died.
type endings struct{ expired, died int }

// of returns what is known about a queue; the caller has locked the cache.
func (c *cache) of(queue int64) *cached {
	k := c.queues[queue]
	if k == nil {
		k = &cached{bound: lowest(queue)}
		c.queues[queue] = k
	}
	return k
}

// each runs do for queues that exist.
func (c *cache) each(queues []int64, do func(q int64, k *cached)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range queues {
		do(q, c.of(q))
	}
}

// one is each for one queue.
func (c *cache) one(queue int64, do func(k *cached)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.of(queue))
}

// saw records the queues that a transaction has read.
func (c *cache) saw(heads []Heads) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range heads {
		h := &heads[i]
		k := c.of(h.Num)
		keeps := h.Settings.DeadKeep == 0 && !h.Remembers
		if k.keeps && !keeps {
			k.raiser = nil // a look under way may have left out the old
		}
		k.keeps = keeps
		if k.revision == h.Revision {
			continue
		}
		was := k.settings
		k.revision, k.settings, k.history.last = h.Revision, nil, time.Time{}
		if !h.Settings.Unset() {
			k.settings = new(h.Settings)
		}
		k.history.ended = was != nil && was.History > 0 && h.Settings.History == 0
	}
}

// withSettings returns the queues with settings for which only returns true.
func (c *cache) withSettings(queues []int64, only condition) (found []int64) {
	c.each(queues, func(q int64, k *cached) {
		if k.settings != nil && only(k.settings) {
			found = append(found, q)
		}
	})
	slices.Sort(found)
	return found
}

// tell records when a lease is told that there may be something next. It reports whether
// another lease was told of a later instant, and so would come too late.
func (k *cached) tell(next int64, due time.Time) (late bool) {
	late = k.told && next < k.until
	k.told, k.until, k.due = true, next, due
	return late
}

// expects reports whether leases were told that something is due by now in each of the queues.
func (c *cache) expects(queues []int64) bool {
	now, all := time.Now(), len(queues) > 0
	c.each(queues, func(_ int64, k *cached) {
		all = all && k.told && k.until != never && !now.Before(k.due)
	})
	return all
}

// sooner reports whether an instant is before the one that leases were told, or may be.
func (k *cached) sooner(at int64) bool { return k.asking > 0 || !k.told || at < k.until }

// How soon a lease looks again for rows that others have locked, in milliseconds: a rollback
// unlocks them without a notice. The pause doubles up to retryMost.
const (
	retryLeast = 5
	retryMost  = 100
	spareLeast = 64 // the first value of spareRows
)

// lookAgainIn returns how soon to look again for rows that others have locked. none: this look
// found nothing else.
func (k *cached) lookAgainIn(none bool) int64 {
	pause := max(retryLeast, k.pause)
	k.pause = min(2*pause, retryMost)
	if !none {
		pause, k.pause = retryLeast, 0
	}
	return pause
}
