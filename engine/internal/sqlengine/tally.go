package sqlengine

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine/internal/rules"
)

// tallies are changes of counts.
type tallies map[tallyOf]int64

type tallyOf struct {
	queue  int64
	count  Count
	minute int64
}

// count adds n times the counts of a row.
func (t tallies) count(r *Row, n int64) {
	switch r.Kind {
	case Waiting, Ranked:
		t[tallyOf{r.Queue, CountWaiting, 0}] += n
		t[tallyOf{r.Queue, CountDue, rules.MinuteOf(r.Due)}] += n
	case Leased:
		t[tallyOf{r.Queue, CountLeased, 0}] += n
	case Dead:
		t[tallyOf{r.Queue, CountDead, 0}] += n
	case Finished:
		t[tallyOf{r.Queue, CountHistory, 0}] += n
	}
}

// changes returns the nonzero tallies in order.
func (t tallies) changes() []Tally {
	changes := make([]Tally, 0, len(t))
	for of, n := range t {
		if n != 0 {
			changes = append(changes, Tally{of.queue, of.count, of.minute, n})
		}
	}
	slices.SortFunc(changes, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Count, b.Count), cmp.Compare(a.Minute, b.Minute))
	})
	return changes
}

// folding adds up tallies in the background.
type folding struct {
	changed atomic.Int64 // changes since the last run
	under   atomic.Bool  // a run is under way

	// Only the running task uses these. As with low bounds, almost all tallies below from have
	// been added up. A run over all finds the rest from time to time.
	from  int64
	whole time.Time // when the next run over all is due
}

// foldAfter is the number of changes between two runs of this process. foldEach is added to
// the changed rows of each transaction. foldWithin bounds a run.
const (
	foldAfter  = 16_384
	foldEach   = 3
	foldWithin = 10 * time.Second
	foldWhole  = time.Minute // the time between two runs over all tallies
	foldSlack  = 1000        // how many later tallies may commit before an earlier one
)

// fold starts a run when this process has written many tallies.
func (e *Engine) fold(changed int) {
	f := &e.folding
	if f.changed.Add(int64(changed+foldEach)) < foldAfter || !f.under.CompareAndSwap(false, true) {
		return
	}
	f.changed.Store(0)
	e.tasks.Go(func() {
		defer f.under.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), foldWithin)
		defer cancel()
		if now := time.Now(); !now.Before(f.whole) {
			f.from, f.whole = 0, now.Add(foldWhole)
		}
		for more, err := true, error(nil); more && err == nil; {
			var last int64
			last, more, err = e.store.Fold(ctx, f.from)
			f.from = max(f.from, last-foldSlack)
		}
	})
}
