package sqlengine

import (
	"math"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine/internal/token"
)

// Floor is a lower bound on the places of all rows of a queue, by kind, and on when its
// memories are forgotten. Nothing is below it, as far as this process knows.
type Floor struct {
	Queue     int64
	From      Places
	Forgotten int64
}

// Places are places by the kind of row.
type Places [kinds]token.Place

// floorAt is the floor of a queue with the same place for each kind.
func floorAt(queue int64, at token.Place, forgotten int64) Floor {
	return Floor{Queue: queue, From: Places{at, at, at, at}, Forgotten: forgotten}
}

// ground is the floor below which nothing can be.
func ground(queue int64) Floor { return floorAt(queue, token.All.Low, math.MinInt64) }

// ceiling is the floor of a queue that has nothing.
func ceiling(queue int64) Floor { return floorAt(queue, token.Place{At: never}, never) }

// Ground reports whether nothing can be below it.
func (f *Floor) Ground() bool { return *f == ground(f.Queue) }

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

// floors are those of the queues that this process has looked at.
//
// A database leaves deleted and moved rows in its indexes until it cleans up, which a single
// old snapshot, in any session, prevents. A look from the start of an index walks over all of
// them. So looks begin at the floor, and each raises the floor to what it has found.
//
// This process lowers the floor for what it writes itself and for what notices tell. What
// else comes below, such as a message that was due long ago and that another process gives
// back, is found by whole looks, which begin at the ground.
type floors struct {
	mu     sync.Mutex
	queues map[int64]*floor
	looks  map[*look]struct{} // that are under way
}

type floor struct {
	Floor
	slow int       // how many of the last whole looks in a row were slow
	next time.Time // when a whole look is due
}

// look is a look that is under way.
type look struct {
	from []Floor
	low  map[int64]*Floor // the floors of what has come meanwhile
}

const (
	lookSlow  = 10 * time.Millisecond  // a whole look at a queue is slow that takes as long
	lookMany  = 50 * time.Millisecond  // one at many queues may take as long because of one of them
	lookTwice = 2                      // one slow look may have waited for something else
	lookShare = 20                     // whole looks at a queue take one of so many parts of the time
	lookLeast = time.Second            // the least time between two of them, unless a lease needs one
	lookMost  = 30 * time.Second       // and the most
	lookSlack = 250 * time.Millisecond // how long before its commit a push may have read the time
)

// quick reports whether a lease may wait for a whole look.
func (x *floor) quick() bool { return x.slow < lookTwice }

// begin begins a look at queues from their floors, or, with whole, from the ground where that
// is quick.
func (f *floors) begin(queues []int64, whole bool) *look {
	l := &look{from: grounds(queues)}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, q := range queues {
		if x := f.queues[q]; x != nil && !(whole && x.quick()) {
			l.from[i] = x.Floor
		}
	}
	if f.looks == nil {
		f.looks = make(map[*look]struct{})
	}
	f.looks[l] = struct{}{}
	return l
}

// from are the floors of queues, for a look from which nothing is learnt.
func (f *floors) from(queues []int64) []Floor {
	l := f.begin(queues, false)
	f.end(l, nil, 0, 0)
	return l.from
}

// end ends a look that has found heads; nil: it has failed, or is not to be relied on. took is
// how long a whole look has taken; 0: it began at the floors.
func (f *floors) end(l *look, heads []Heads, ms int64, took time.Duration) {
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
				f.queues = make(map[int64]*floor)
			}
			x = new(floor)
			f.queues[q] = x
		}
		x.Floor = heads[i].floor(ms)
		if took > 0 && x.quick() {
			x.timed(took)
			f.tell(&x.Floor) // other looks that are under way may miss what this one has found
		}
		if low := l.low[q]; low != nil {
			x.lower(low)
		}
	}
}

// whole takes note of what a whole look has found beside the leases.
func (f *floors) whole(h *Heads, ms int64, took time.Duration) {
	low := h.floor(ms)
	f.lower(&low)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[h.Num].timed(took)
}

// timed takes note of how long a whole look has taken.
func (x *floor) timed(took time.Duration) {
	if x.slow++; took < lookSlow {
		x.slow = 0
	}
	x.next = time.Now().Add(min(max(lookLeast, lookShare*took), lookMost))
}

// due returns those of queues at which a whole look is due. The caller makes it.
func (f *floors) due(queues []int64) (due []int64) {
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

// floor is what follows from heads. Others may be about to push what is due at once, which is
// below the floor that the look began at when the clock has been set back.
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

// lower takes note of the floor of what has come, or may have come, to a queue.
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
	for l := range f.looks {
		if l.low == nil {
			l.low = make(map[int64]*Floor)
		}
		if x := l.low[low.Queue]; x != nil {
			x.lower(low)
		} else {
			l.low[low.Queue] = new(*low)
		}
	}
}
