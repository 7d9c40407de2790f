package sqlengine

import (
	"math"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine/internal/token"
)

// LowBound is a lower bound of the places of a queue's rows, by kind, and of when its memories
// are forgotten. As far as this process knows, nothing is below.
type LowBound struct {
	Queue     int64
	From      Places
	Forgotten int64
}

// Places has a place for each kind of row.
type Places [kinds]token.Place

// boundAt returns a bound with the same place for each kind.
func boundAt(queue int64, at token.Place, forgotten int64) LowBound {
	return LowBound{Queue: queue, From: Places{at, at, at, at}, Forgotten: forgotten}
}

// lowest returns the lowest bound: nothing is known.
func lowest(queue int64) LowBound { return boundAt(queue, token.All.Low, math.MinInt64) }

// highest returns the bound of an empty queue.
func highest(queue int64) LowBound { return boundAt(queue, token.Place{At: never}, never) }

// Lowest reports whether f is the lowest bound.
func (f *LowBound) Lowest() bool { return *f == lowest(f.Queue) }

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

// lowBounds holds the bounds of the queues that this process has looked at.
//
// A database keeps deleted and moved rows in its indexes until it cleans up, and one old
// snapshot in any session prevents that. A look from the start of an index walks over all of
// them. So looks begin at the bound, and each look raises the bound to what it found.
//
// This process lowers the bound for its own writes and for notices. Whole looks, which begin
// at the lowest bound, find other rows that come below, for example an old message that
// another process releases.
type lowBounds struct {
	mu     sync.Mutex
	queues map[int64]*queueBound
	looks  map[*look]struct{} // running looks
}

type queueBound struct {
	LowBound
	slow int       // how many of the last whole looks were slow in a row
	next time.Time // when the next whole look is due
}

// look is a running look.
type look struct {
	from []LowBound
	low  map[int64]*LowBound // lower bounds of the rows that came meanwhile
}

const (
	lookSlow  = 10 * time.Millisecond  // a whole look at one queue that takes this long is slow
	lookMany  = 50 * time.Millisecond  // a whole look at many queues that takes this long is slow for each: any may be the reason
	lookTwice = 2                      // slow looks in a row until leases avoid them: a single one may have waited for something else
	lookShare = 20                     // whole looks at a queue take at most 1/20 of the time
	lookLeast = time.Second            // least time between two, unless a lease needs one
	lookMost  = 30 * time.Second       // most time between two
	lookSlack = 250 * time.Millisecond // how long before its commit a push may read the time
)

// quick reports whether a lease may wait for a whole look.
func (x *queueBound) quick() bool { return x.slow < lookTwice }

// begin begins a look at queues from their bounds, or, with whole, from the lowest bound if
// that is quick.
func (f *lowBounds) begin(queues []int64, whole bool) *look {
	l := &look{from: lowestOf(queues)}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range queues {
		if x := f.queues[q]; x != nil && !(whole && x.quick()) {
			l.from[i] = x.LowBound
		}
	}
	if f.looks == nil {
		f.looks = make(map[*look]struct{})
	}
	f.looks[l] = struct{}{}
	return l
}

// from returns the bounds of queues, for a look that does not raise them.
func (f *lowBounds) from(queues []int64) []LowBound {
	l := f.begin(queues, false)
	f.end(l, nil, 0, 0)
	return l.from
}

// end ends a look that found heads; nil: it failed, or must not raise bounds. took is how
// long a whole look took; 0: the look began at the bounds.
func (f *lowBounds) end(l *look, heads []Heads, ms int64, took time.Duration) {
	if took < lookMany {
		took /= time.Duration(max(1, len(heads))) // each queue's share
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.looks, l)
	for i := range heads {
		q := heads[i].Num
		x := f.queues[q]
		if x == nil {
			if f.queues == nil {
				f.queues = make(map[int64]*queueBound)
			}
			x = new(queueBound)
			f.queues[q] = x
		}
		x.LowBound = heads[i].lowBound(ms)
		if took > 0 && x.quick() {
			x.timed(took)
			f.tell(&x.LowBound) // other running looks may miss what this one found
		}
		if low := l.low[q]; low != nil {
			x.lower(low)
		}
	}
}

// whole records a whole look of the background task.
func (f *lowBounds) whole(h *Heads, ms int64, took time.Duration) {
	low := h.lowBound(ms)
	f.lower(&low)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[h.Num].timed(took)
}

// timed records how long a whole look took.
func (x *queueBound) timed(took time.Duration) {
	if x.slow++; took < lookSlow {
		x.slow = 0
	}
	x.next = time.Now().Add(min(max(lookLeast, lookShare*took), lookMost))
}

// due returns the queues that need a whole look. The caller makes it.
func (f *lowBounds) due(queues []int64) (due []int64) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, q := range queues {
		if x := f.queues[q]; x != nil && !now.Before(x.next) {
			x.next = now.Add(lookMost)
			due = append(due, q)
		}
	}
	return due
}

// lowBound returns the bound that heads imply. For waiting messages it is at most the present
// less lookSlack. Other transactions may be about to commit messages that are due at once,
// even after the clock was set back.
func (h *Heads) lowBound(ms int64) LowBound {
	f := LowBound{Queue: h.Num, From: h.First, Forgotten: h.Forgotten}
	early := token.Place{At: ms - lookSlack.Milliseconds()}
	for _, k := range []Kind{Waiting, Ranked} {
		if early.Compare(f.From[k]) < 0 {
			f.From[k] = early
		}
	}
	if h.Settings.DeadKeep == 0 { // the dead were not looked at
		f.From[Dead] = token.All.Low
	}
	if !h.Remembers {
		f.Forgotten = math.MinInt64
	}
	return f
}

// lower lowers the bound of a queue to rows that came or may have come.
func (f *lowBounds) lower(low *LowBound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.queues[low.Queue]; x != nil {
		x.lower(low)
	}
	f.tell(low)
}

// tell records a lower bound in the running looks.
func (f *lowBounds) tell(low *LowBound) {
	for l := range f.looks {
		if l.low == nil {
			l.low = make(map[int64]*LowBound)
		}
		if x := l.low[low.Queue]; x != nil {
			x.lower(low)
		} else {
			l.low[low.Queue] = new(*low)
		}
	}
}
