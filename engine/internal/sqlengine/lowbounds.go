package sqlengine

import (
	"context"
	"math"
	"time"

	"github.com/tarryhq/tarry/engine/internal/codec"
)

// LowBound is a lower bound of the places of a queue's rows, by kind, and of when its memories
// are forgotten. As far as this process knows, nothing is below.
type LowBound struct {
	Queue     int64
	From      Places
	Forgotten int64
}

// Places has a place for each kind of row.
type Places [kinds]codec.Place

// boundAt returns a bound with the same place for each kind.
func boundAt(queue int64, at codec.Place, forgotten int64) LowBound {
	return LowBound{Queue: queue, From: Places{at, at, at, at}, Forgotten: forgotten}
}

// lowest returns the lowest bound: nothing is known.
func lowest(queue int64) LowBound { return boundAt(queue, codec.WholeList.Low, math.MinInt64) }

// highest returns the bound of an empty queue.
func highest(queue int64) LowBound { return boundAt(queue, codec.Place{At: never}, never) }

// Lowest reports whether f is the lowest bound.
func (f *LowBound) Lowest() bool { return *f == lowest(f.Queue) }

// leaveOld makes a look from f leave out the dead and the memories.
func (f *LowBound) leaveOld() { f.From[Dead].At, f.Forgotten = never, never }

// Live reports whether a look from f leaves out the dead and the memories.
func (f *LowBound) Live() bool { return f.From[Dead].At == never && f.Forgotten == never }

func lowestOf(queues []int64) []LowBound {
	all := make([]LowBound, len(queues))
	for i, q := range queues {
		all[i] = lowest(q)
	}
	return all
}

// lower lowers f to o where o is lower.
func (f *LowBound) lower(o *LowBound) {
	for k := range f.From {
		if o.From[k].Compare(f.From[k]) < 0 {
			f.From[k] = o.From[k]
		}
	}
	f.Forgotten = min(f.Forgotten, o.Forgotten)
}

// A database keeps deleted and moved rows in its indexes until it cleans up, and one old
// snapshot in any session prevents that. A look from the start of an index walks over all of
// them. So looks begin at the low bound of a queue, and raise it to what they found. The
// process lowers it for its own writes and for notices.
//
// Whole looks begin at the lowest bound. They find other rows that came below, for example an
// old message that another process releases. A lease that expects nothing makes one, if the
// last one was quick. Otherwise a background task makes them, and no lease waits for it.
const (
	lookSlow  = 10 * time.Millisecond  // a whole look at one queue that takes this long is slow
	lookMany  = 50 * time.Millisecond  // a whole look at many queues that takes this long is slow for each: any may be the reason
	lookShare = 20                     // whole looks at a queue take at most 1/20 of the time
	lookLeast = time.Second            // least time between two, unless a lease makes them
	lookMost  = 30 * time.Second       // most time between two
	lookSlack = 250 * time.Millisecond // how long before its commit a push may read the time

	wholeWithin = 5 * time.Minute // bounds the whole look at one queue
)

// look is a running look.
type look struct{ from []LowBound }

// beginLook begins a look at queues: a whole one where a whole look took less than quick, and
// one from the bound at the others. With a quick of 0 it leaves out the dead and the memories of
// queues that drop none.
func (c *cache) beginLook(queues []int64, quick time.Duration) *look {
	l := &look{from: make([]LowBound, 0, len(queues))}
	c.each(queues, func(q int64, k *cached) {
		from := k.bound
		if k.took < quick {
			from = lowest(q)
		}
		if quick == 0 && k.keeps {
			from.leaveOld()
		}
		l.from = append(l.from, from)
		if k.raiser == nil {
			k.raiser, k.came = l, highest(q)
		}
	})
	return l
}

// endLook ends a look that found heads; nil: it failed. took is how long it took; 0: it was
// not a whole one.
func (c *cache) endLook(l *look, heads []Heads, ms int64, took time.Duration) {
	if took < lookMany {
		took /= time.Duration(max(1, len(l.from))) // each queue's share
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range l.from {
		k := c.of(l.from[i].Queue)
		raises := k.raiser == l
		if raises {
			k.raiser = nil
		}
		if heads == nil {
			continue
		}
		found := heads[i].lowBound(ms)
		if raises {
			found.lower(&k.came)
			k.bound = found
		}
		if took > 0 && l.from[i].Lowest() {
			k.looked(&found, took)
		}
	}
}

// looked records what a whole look found, and how long it took.
func (k *cached) looked(found *LowBound, took time.Duration) {
	k.lower(found)
	k.took, k.last = min(took, k.last), took
	k.next = time.Now().Add(min(max(lookLeast, lookShare*k.took), lookMost))
}

// lower lowers the bound of a queue to rows that came or may have come.
func (k *cached) lower(low *LowBound) {
	k.bound.lower(low)
	k.came.lower(low)
}

// lowBounds returns the bounds of queues for looks that leave out the dead and the memories.
func (c *cache) lowBounds(queues []int64) (from []LowBound) {
	c.each(queues, func(_ int64, k *cached) {
		low := k.bound
		low.leaveOld()
		from = append(from, low)
	})
	return from
}

// lookWhole starts a task that makes the whole looks that are due, one after another.
func (e *Engine) lookWhole(queues []int64) {
	if !e.wholeLooks.CompareAndSwap(false, true) {
		return
	}
	now := time.Now()
	var due []int64
	e.cache.each(queues, func(q int64, k *cached) {
		if !now.Before(k.next) {
			k.next = now.Add(lookMost) // should it fail
			due = append(due, q)
		}
	})
	if due == nil {
		e.wholeLooks.Store(false)
		return
	}
	e.tasks.Go(func() {
		defer e.wholeLooks.Store(false)
		for _, q := range due {
			e.lookWholeAt(q)
		}
	})
}

// lookWholeAt makes the whole look at a queue, and gives a hint for what it found.
func (e *Engine) lookWholeAt(queue int64) {
	ctx, cancel := context.WithTimeout(e.untilClose, wholeWithin)
	defer cancel()
	sent := time.Now()
	now, heads, err := e.heads(ctx, "lease", lowestOf([]int64{queue}))
	if err != nil {
		return
	}
	h := &heads[0]
	found := h.lowBound(e.clock(now).UnixMilli())
	sooner := false
	e.cache.one(queue, func(k *cached) {
		k.looked(&found, time.Since(sent))
		sooner = k.sooner(max(min(h.Waiting, h.Leased), h.Paused))
	})
	if sooner {
		e.watchers.Hint(h.Name)
	}
}

// lowBound returns the bound that heads imply. For waiting messages it is at most the present
// less lookSlack. Other transactions may be about to commit messages that are due at once,
// even after the clock was set back.
func (h *Heads) lowBound(ms int64) LowBound {
	f := LowBound{Queue: h.Num, From: h.First, Forgotten: h.Forgotten}
	early := codec.Place{At: ms - lookSlack.Milliseconds()}
	for _, k := range []Kind{Waiting, Ranked} {
		if early.Compare(f.From[k]) < 0 {
			f.From[k] = early
		}
	}
	if h.Settings.DeadKeep == 0 { // the dead were not looked at
		f.From[Dead] = codec.WholeList.Low
	}
	if !h.Remembers {
		f.Forgotten = math.MinInt64
	}
	return f
}
