package server

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/trend"
)

// How viewers see the recent past of a queue.
const (
	liveSpan  = 5 * time.Minute // the span summed up
	liveStep  = trend.Resolution
	rateSteps = 6 // a rate is taken over this many complete steps

	lostFor = 10 * time.Minute // a queue that is no longer listed stays this long

	figureAll     = 5 * time.Second // how often a queue is summed up
	figureWatched = time.Second     // how often a watched queue is
)

// row is a queue as viewers see it.
type row struct {
	queue   string      // never changes
	version uint64      // under the sampler's lock, like json; 0: the row was dropped
	json    []byte      // replaced, but never changed in place
	touched atomic.Bool // this server may have changed messages in a way that counts do not show

	// The rest belongs to the sampler's goroutine.
	live     wire.LiveQueue
	info     engine.QueueInfo
	activity uint64
	active   time.Time // when something last happened
	figured  time.Time // when the recent past was last summed up
	next     []byte    // becomes json
	fresh    bool      // the row has changed in this round
	lost     time.Time // when it was first missing from the list
}

// see updates a queue's row. listed: info comes from the list of all queues. The recent past is
// summed up at most once per every.
func (r *round) see(info *engine.QueueInfo, listed bool, every time.Duration) {
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
	if q.touched.Swap(false) || !known || *info != q.info || activity != q.activity {
		q.live.Changes++
	}
	if !known || activity != q.activity {
		q.active = r.now
	}
	gone := q.live.Gone && !listed && *info == q.info // viewers of a queue that is gone see an empty one
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

// figure sums up the recent past of a queue, and reports whether that has changed.
func (r *round) figure(q *row) bool {
	s, err := r.s.trends.Series(q.queue, liveSpan, liveStep, r.slots...)
	if err != nil {
		return false // never happens: liveSpan and liveStep are valid
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

// perSecond returns a rate, rounded to three decimals.
func perSecond(n uint64, seconds float64) float64 {
	return float64(int(float64(n)/seconds*1000+0.5)) / 1000
}

// lose updates the row of a queue that is no longer listed.
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

// tell marks a row to be sent to viewers.
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
