package server

import (
	"reflect"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/trend"
)

// What viewers are told of what happened to a queue.
const (
	liveSpan  = 5 * time.Minute // is summed up
	liveStep  = trend.Resolution
	rateSteps = 6 // of liveStep, which are over, are what a rate is taken of

	lostFor = 10 * time.Minute // is how long a queue that is listed no more stays

	figureAll     = 5 * time.Second // as often as that
	figureWatched = time.Second     // that of a queue that is watched
)

// row is a queue as viewers are told of it.
type row struct {
	queue   string // which does not change
	version uint64 // under the sampler's lock, as is
	json    []byte // which is never changed itself

	// The rest is of the sampler's goroutine alone.
	live     wire.LiveQueue
	info     engine.QueueInfo
	activity uint64
	active   time.Time // when something happened last
	figured  time.Time // when what happened was summed up last
	next     []byte    // becomes json
	fresh    bool      // it does in this round
	lost     time.Time // when it was listed no more
}

// see takes up what a queue holds, which may be one of a list of all. touched: its messages
// may have changed although nothing shows it. What happened is summed up as often as every
// says.
func (r *round) see(info *engine.QueueInfo, listed, touched bool, every time.Duration) {
	q := r.s.rows[info.Queue]
	known := q != nil
	if !known {
		q = &row{queue: info.Queue}
	}
	activity := uint64(0)
	if r.s.trends != nil {
		activity = r.s.trends.Activity(info.Queue)
	}
	was := q.live
	if moved := !known || touched || *info != q.info || activity != q.activity; moved {
		q.live.Changes++
	}
	if !known || activity != q.activity {
		q.active = r.now
	}
	gone := q.live.Gone && !listed && *info == q.info // a viewer of a queue that is gone sees an empty one
	q.info, q.activity = *info, activity
	q.live.SetInfo(info)
	q.live.Gone = gone
	news := !known || q.live.Changes != was.Changes || gone != was.Gone
	if r.s.trends != nil && r.now.Sub(q.figured) >= every && r.now.Sub(q.active) < liveSpan+2*liveStep {
		q.figured = r.now
		if r.figure(q) {
			news = true
		}
	}
	if news {
		r.tell(q)
	}
}

// figure sums up what happened to a queue, and reports whether that tells something new.
func (r *round) figure(q *row) bool {
	s, err := r.s.trends.Series(q.queue, liveSpan, liveStep, r.slots...)
	if err != nil {
		return false // there is such a span
	}
	r.slots = s.Slots
	all := s.Total()
	h := happened(&all)
	pushed, acked := uint64(0), uint64(0)
	over := s.Slots[:len(s.Slots)-1]
	for _, slot := range over[len(over)-rateSteps:] {
		pushed += slot.Counts[trend.Pushed]
		acked += slot.Counts[trend.Acked]
	}
	seconds := (rateSteps * liveStep).Seconds()
	was := q.live
	q.live.Trend, q.live.PushedPerS, q.live.AckedPerS = &h, perSecond(pushed, seconds), perSecond(acked, seconds)
	return was.Trend == nil || was.PushedPerS != q.live.PushedPerS || was.AckedPerS != q.live.AckedPerS || !reflect.DeepEqual(was.Trend, &h)
}

// perSecond is a rate with three digits behind the point.
func perSecond(n uint64, seconds float64) float64 {
	return float64(int(float64(n)/seconds*1000+0.5)) / 1000
}

// lose takes up that a queue is not listed any more.
func (r *round) lose(q *row) {
	if q.live.Gone {
		if r.now.Sub(q.lost) >= lostFor {
			r.old = append(r.old, q)
		}
		return
	}
	q.lost = r.now
	q.info = engine.QueueInfo{Queue: q.queue}
	q.live.SetInfo(&q.info)
	q.live.Gone = true
	q.live.Changes++
	r.tell(q)
}

// tell has viewers be told of a row.
func (r *round) tell(q *row) {
	if r.s.trends != nil && q.live.Trend == nil {
		q.live.Trend = new(wire.Happened)
	}
	q.next = wire.AppendJSON(nil, &q.live)
	if !q.fresh {
		q.fresh = true
		r.fresh = append(r.fresh, q)
	}
}

// totals sum up what all queues hold.
type totals struct{ wire.LiveTotals }

func (t *totals) add(i *engine.QueueInfo) {
	t.Queues++
	t.Scheduled += i.Scheduled
	t.Ready += i.Ready
	t.Leased += i.Leased
	t.Dead += i.Dead
}

func (t *totals) json() []byte { return wire.AppendJSON(nil, &t.LiveTotals) }
