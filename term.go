package tarry

import "time"

// term is how long a lease lasts by the clocks of this process, which never take
// it to last longer than the engine does: it counts from before the engine was
// asked, for as long as the engine's clock said when it answered.
type term struct {
	from   time.Time     // with both clocks; zero: the lease has no end
	length time.Duration // from one renewal to the next deadline
}

// termOf is the term of a lease that was asked for at sent and answered when the
// engine's clock showed engineNow.
func termOf(deadline, engineNow, sent time.Time) term {
	if deadline.IsZero() {
		return term{}
	}
	return term{from: sent, length: deadline.Sub(engineNow)}
}

func (t term) endless() bool { return t.from.IsZero() }

// renewed is the term after a renewal that was asked for at sent.
func (t term) renewed(sent time.Time) term { return term{from: sent, length: t.length} }

// end is the deadline by the monotonic clock.
func (t term) end() time.Time { return t.from.Add(t.length) }

// half is when to renew the lease.
func (t term) half() time.Time { return t.from.Add(t.length / 2) }

// ended reports whether the deadline has passed by the monotonic clock, which no
// step of the wall clock moves.
func (t term) ended(now time.Time) bool { return !t.endless() && !now.Before(t.end()) }

// doubtful reports whether the deadline has passed by any clock. While the machine
// is suspended the monotonic clock stands still and the wall clock goes on; who is
// about to begin something must believe the one that has seen more.
func (t term) doubtful(now time.Time) bool {
	return !t.endless() && (now.Sub(t.from) >= t.length || now.UnixNano()-t.from.UnixNano() >= int64(t.length))
}
