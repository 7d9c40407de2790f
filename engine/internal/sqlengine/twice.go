package sqlengine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// twiceLeast is from how many messages on a lease is worth two transactions: a database takes
// its time to write them, one after the other in each.
const twiceLeast = 256

// errRanked undoes one of two transactions of a lease that meets what has a rank.
var errRanked = fmt.Errorf("%w: something ranked is due", ErrInternal)

// divides reports whether a lease is made by two transactions at once. What one of them has
// locked the other skips, so that both together take what comes first; but not of two orders.
func (e *Engine) divides(ahead []Range, visits []*visit) bool {
	if e.cfg.later != nil || len(visits) != 1 || len(ahead) == 0 || ahead[0].Kind != Waiting || ahead[0].Most < twiceLeast {
		return false
	}
	q := ahead[0].Queue
	return !e.told.ranks(q) && len(e.seen.of([]int64{q}, boundsLeases)) == 0
}

// handOutTwice answers a visit by two transactions. When one of them fails the visit has
// what the other got, and who asks for more is told.
func (e *Engine) handOutTwice(ctx context.Context, ahead []Range, v *visit) (now time.Time, err error) {
	var halves [2]visit
	var nows [2]time.Time
	var errs [2]error
	refuse := func(w *work) error {
		if h := w.queues[v.num]; h.First[Ranked].At <= w.ms {
			return errRanked
		}
		return nil
	}
	hand := func(i, most int) {
		h, r := &halves[i], ahead[0]
		*h = *v
		h.want.Max, r.Most, h.bytes = most, min(most, engine.MaxBatch), v.bytes/2
		nows[i], errs[i] = e.handOut(ctx, []int64{v.num}, []Range{r}, []*visit{h}, refuse)
	}
	other := make(chan struct{})
	go func() {
		defer close(other)
		hand(1, v.want.Max/2)
	}()
	hand(0, v.want.Max-v.want.Max/2)
	<-other
	if errs[0] == errRanked && errs[1] == errRanked {
		return e.handOut(ctx, []int64{v.num}, ahead, []*visit{v}, nil)
	}
	if errs[0] != nil && errs[1] != nil {
		if errs[0] == errRanked {
			errs[0] = errs[1]
		}
		return now, errs[0]
	}
	v.granted, v.told, v.next = engine.Granted{}, true, never
	v.granted.Messages = make([]engine.Lease, 0, len(halves[0].granted.Messages)+len(halves[1].granted.Messages))
	for i := range halves {
		h := &halves[i]
		if errs[i] != nil {
			v.granted.More = true
			continue
		}
		if nows[i].After(now) {
			now = nows[i]
		}
		v.granted.Messages = append(v.granted.Messages, h.granted.Messages...)
		v.granted.More = v.granted.More || h.granted.More
		v.granted.Held = v.granted.Held || h.granted.Held
		v.next = min(v.next, h.next)
	}
	v.granted.Held = v.granted.Held && !v.granted.More
	slices.SortFunc(v.granted.Messages, func(a, b engine.Lease) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
	})
	return now, nil
}
