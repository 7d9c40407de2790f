package diskengine

import (
	"math"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/pace"
)

// rules are the settings of a queue, and what is kept in memory to hold to them.
type rules struct {
	engine.Settings
	revision uint64
	bucket   pace.Bucket
	held     bool     // somebody was told that messages are held back until a lease ends
	graves   position // at or before the first grave: what has been dropped is not walked again
}

func (r *rules) rate() pace.Rate { return pace.Rate{PerSecond: r.Rate, Burst: r.Bursts()} }

// refusePending says why a queue does not take one more live message; nil: it does.
func (c *change) refusePending(key string) error {
	r := c.q.rules
	if r == nil || r.MaxPending == 0 || c.q.counts.live()+c.counts.live() < r.MaxPending {
		return nil
	}
	return engine.RefusePending(engine.Ref{Queue: c.q.name, Key: key}, r.MaxPending)
}

// places is how many more messages in_flight lets be leased. Leases that are over and
// have not lapsed yet do not count.
func (q *queue) places(now clock) int64 {
	r := q.rules
	if r == nil || r.InFlight == 0 {
		return math.MaxInt
	}
	leased := q.counts.leased
	if leased >= r.InFlight && q.leases.late(now.ms) {
		leased = 0
		for _, l := range q.leases.byID {
			if l.deadline > now.ms {
				leased++
			}
		}
	}
	return max(0, r.InFlight-leased)
}

// passes is how many more messages the rate lets be leased now.
func (q *queue) passes(now clock) int64 {
	r := q.rules
	if r == nil || r.Rate == 0 {
		return math.MaxInt
	}
	return int64(r.bucket.Allows(now.Time, r.rate()))
}

// grantable is how many more messages may be leased now.
func (q *queue) grantable(now clock) int {
	if q.rules == nil {
		return math.MaxInt
	}
	return int(min(q.places(now), q.passes(now)))
}

// granted takes note of leases that grantable has let be given.
func (q *queue) granted(n int) {
	if r := q.rules; r != nil && r.Rate > 0 {
		r.bucket.Take(n, r.rate())
	}
}

// gathers is when the rate, whose passes are used up, lets another lease pass.
func (q *queue) gathers() int64 {
	at := q.rules.bucket.Next(q.rules.rate())
	return at.Add(time.Millisecond - 1).UnixMilli()
}

// refuseClaim says why a claim is held back; nil: it is not.
func (q *queue) refuseClaim(ref engine.Ref, now clock) error {
	switch {
	case q.places(now) == 0:
		return engine.RefuseClaim(ref, time.Time{})
	case q.passes(now) == 0:
		return engine.RefuseClaim(ref, instant(q.gathers()))
	}
	return nil
}

// keeps is since when messages may be dead that are not gone.
func (q *queue) keeps(now clock) int64 {
	r := q.rules
	if r == nil || r.DeadKeep == 0 {
		return never
	}
	return now.ms - millis(r.DeadKeep)
}

// millis is a duration in milliseconds, rounded up.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// decayed reports whether a message is one that has been dead for so long that it is gone.
func (q *queue) decayed(r *record, now clock) bool { return r.dead && r.died < q.keeps(now) }

// firstGrave is at or before the first grave of one that is not gone.
func (q *queue) firstGrave(now clock) position {
	first := position{at: q.keeps(now)}
	if q.rules != nil && first.less(q.rules.graves) {
		first = q.rules.graves
	}
	return first
}

// crowded is how many dead are more than may be.
func (q *queue) crowded() int64 {
	if r := q.rules; r != nil && r.DeadMax > 0 {
		return max(0, q.counts.dead-r.DeadMax)
	}
	return 0
}

// buries reports whether dead ones are to be dropped.
func (q *queue) buries(now clock) bool {
	r := q.rules
	return r != nil && q.counts.dead > 0 && (q.crowded() > 0 || r.graves.at < q.keeps(now))
}

// dropDead drops the dead that are gone, at most so many, the first ones first, and
// returns where the others begin.
func (c *change) dropDead(most int) (position, error) {
	q := c.q
	crowd, keeps, graves := q.crowded(), q.keeps(c.now), lastPosition
	var chunk []position
	lower := timeKey(nil, kindDead, q.num, q.rules.graves)
	err := scan(q.e.store.db, lower, upperBound(lower[:headLen]), func(k, _ []byte) (bool, error) {
		_, at, err := parseTimeKey(k, kindDead)
		if err == nil && (len(chunk) == most || int64(len(chunk)) >= crowd && at.at >= keeps) {
			graves = at
			return false, nil
		}
		chunk = append(chunk, at)
		return true, err
	})
	for _, at := range chunk {
		if err == nil {
			_, err = c.unearth(at)
		}
	}
	return graves, err
}
