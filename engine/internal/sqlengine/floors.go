package sqlengine

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine/internal/token"
)

// Floor is where a queue is looked at from: below it there was nothing.
type Floor struct {
	Queue     int64
	From      Places
	Forgotten int64

	whole bool // this is a whole look, to be timed
}

// Places are places by the kind of row.
type Places [kinds]token.Place

// ground is the floor below which nothing can be.
func ground(queue int64) Floor {
	low := token.All.Low
	return Floor{Queue: queue, From: Places{low, low, low, low}, Forgotten: math.MinInt64}
}

// Ground reports whether nothing can be below it.
func (f *Floor) Ground() bool {
	g := ground(f.Queue)
	return f.From == g.From && f.Forgotten == g.Forgotten
}

func grounds(queues []int64) []Floor {
	all := make([]Floor, len(queues))
	for i, q := range queues {
		all[i] = ground(q)
	}
	return all
}

// lower brings a floor down to where another is lower.
func (f *Floor) lower(o *Floor) {
	for k := range f.From {
		if o.From[k].Compare(f.From[k]) < 0 {
			f.From[k] = o.From[k]
		}
	}
	f.Forgotten = min(f.Forgotten, o.Forgotten)
}

// below takes away what is not below another.
func (f *Floor) below(o *Floor) {
	for k := range f.From {
		if f.From[k].Compare(o.From[k]) >= 0 {
			f.From[k] = token.Place{At: never}
		}
	}
	if f.Forgotten >= o.Forgotten {
		f.Forgotten = never
	}
}

// floors are what this process knows to be below all that queues have.
//
// A database leaves what was deleted or moved in its indexes until that is cleaned up,
// which a single old snapshot, in whatever session, prevents for as long as it is open. What
// queues have first stands behind all that, and who looked from the start of an index would
// walk over every message that came and went. So one begins where something was found last.
//
// What comes to lie below a floor is mostly known: this process has written it, or a notice
// tells of it. The rest, such as what another process gave back that was due long ago, is met
// by whole looks. They are made all the time while they cost nothing, and else for a
// twentieth of the time, beside the leases.
type floors struct {
	mu     sync.Mutex
	queues map[int64]*floor
	looks  map[*glance]struct{}
}

type floor struct {
	Floor
	took, before time.Duration // the last whole looks
	next         time.Time     // when the next one is due
	doubted      bool          // it is due at once
}

// glance is a look that is under way.
type glance struct {
	from []Floor
	was  []Floor          // the floors when it began, if it is beside others
	low  map[int64]*Floor // what was written meanwhile
}

const (
	lookCheap = 5 * time.Millisecond   // whole looks that take less are made all the time
	lookMany  = 50 * time.Millisecond  // a look at many that takes more may do so because of one
	lookShare = 20                     // the others take one of so many parts of the time
	lookLeast = time.Second            // how long after one that is timed the next one is due
	lookMost  = 30 * time.Second       // and at most
	lookSlack = 250 * time.Millisecond // how long before its commit a push may have read the time
)

// seek says from where to look.
type seek int

const (
	rough seek = iota // from floors: it is only to be known what comes first
	sure              // from the ground, where whole looks cost nothing
	timed             // likewise, and how long that takes is noted
	whole             // from the ground, beside others
)

// of begins a look at queues.
func (f *floors) of(queues []int64, how seek) *glance {
	g := &glance{from: make([]Floor, len(queues))}
	if how == whole {
		g.was = make([]Floor, len(queues))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range queues {
		x := f.queues[q]
		if how == whole && x != nil {
			g.was[i] = x.Floor
		}
		if x == nil || how == whole || how != rough && x.cheap() {
			g.from[i] = ground(q)
			g.from[i].whole = how == timed || how == whole
		} else {
			g.from[i] = x.Floor
		}
	}
	if f.looks == nil {
		f.looks = make(map[*glance]struct{})
	}
	f.looks[g] = struct{}{}
	return g
}

// from is where a look begins of which nothing is learnt.
func (f *floors) from(queues []int64, how seek) []Floor {
	g := f.of(queues, how)
	f.drop(g)
	return g.from
}

// due returns those of queues at which a whole look is due that takes its time, and gives
// others no reason to make it meanwhile.
func (f *floors) due(queues []int64) (due []int64) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range queues {
		if x := f.queues[q]; x != nil && !x.cheap() && (x.doubted || !now.Before(x.next)) {
			x.next, x.doubted = now.Add(lookMost), false
			due = append(due, q)
		}
	}
	return due
}

// doubt has whole looks made soon: something may have come to lie below that nobody has told.
func (f *floors) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.queues {
		x.doubted = true
	}
}

// untimed reports whether it is to be noted how long a look at one of queues takes.
func (f *floors) untimed(queues []int64) bool {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(queues, func(q int64) bool {
		x := f.queues[q]
		return x == nil || x.cheap() && !now.Before(x.next)
	})
}

// cheap reports whether looks from the ground take next to no time. One that takes long but
// once has waited for something else.
func (x *floor) cheap() bool { return min(x.took, x.before) < lookCheap }

// saw ends a look: heads are what it found, in the order of its queues, some of which may be
// missing. 0 for took: it is not known how long the look alone took.
func (f *floors) saw(g *glance, heads []Heads, ms int64, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.looks, g)
	if took < lookMany {
		took /= time.Duration(max(1, len(heads))) // each queue's share
	}
	for i := range g.from {
		if len(heads) == 0 {
			return
		}
		h, from := &heads[0], &g.from[i]
		if h.Num != from.Queue {
			continue
		}
		heads = heads[1:]
		x := f.queues[h.Num]
		if x == nil {
			if f.queues == nil {
				f.queues = make(map[int64]*floor)
			}
			x = new(floor)
			f.queues[h.Num] = x
		}
		found := h.floor(ms)
		if g.was == nil {
			x.Floor = found
		} else {
			found.below(&g.was[i]) // of that the others know more by now
			x.lower(&found)
		}
		if from.whole {
			x.took, x.before = took, x.took
			x.next = time.Now().Add(min(max(lookLeast, lookShare*took), lookMost))
			f.tell(&found) // it may have found what the others do not
		}
		if low := g.low[h.Num]; low != nil {
			x.lower(low)
		}
	}
}

// drop ends a look that has failed.
func (f *floors) drop(g *glance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.looks, g)
}

// floor is what follows from heads. Others may be about to push what is due at once, which lies
// below where the look began when the clock has been set back.
func (h *Heads) floor(ms int64) Floor {
	f := Floor{Queue: h.Num, From: h.First, Forgotten: h.Forgotten}
	early := token.Place{At: ms - lookSlack.Milliseconds()}
	for _, k := range []Kind{Waiting, Ranked} {
		if early.Compare(f.From[k]) < 0 {
			f.From[k] = early
		}
	}
	if h.Settings.DeadKeep == 0 { // nobody has looked
		f.From[Dead] = token.All.Low
	}
	if !h.Remembers {
		f.Forgotten = math.MinInt64
	}
	return f
}

// lower notes that something has come, or may have come, to lie there.
func (f *floors) lower(low *Floor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.queues[low.Queue]; x != nil {
		x.lower(low)
	}
	f.tell(low)
}

// tell tells the looks that are under way.
func (f *floors) tell(low *Floor) {
	for g := range f.looks {
		if g.low == nil {
			g.low = make(map[int64]*Floor)
		}
		if l := g.low[low.Queue]; l != nil {
			l.lower(low)
		} else {
			l := *low
			g.low[low.Queue] = &l
		}
	}
}
