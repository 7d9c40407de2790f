package tarry

import "time"

// term is how long a lease lasts by the clocks of this process, which never take
// it to last longer than the engine does: it counts from before the engine was
// asked, for as long as the engine's clock said when it answered.
type term struct {
	from   time.Time     // with both clocks; zero: the lease has no end
	length time.Duration // to the deadline
	usual  time.Duration // what a lease lasts after a renewal that asks for no more
}

// termFor is the term of a lease of a length that was asked for at sent.
func termFor(sent time.Time, length time.Duration) term { return term{sent, length, length} }

// termOf is the term of a lease that was asked for at sent and answered when the
// engine's clock showed engineNow.
func termOf(deadline, engineNow, sent time.Time) term {
	if deadline.IsZero() {
		return term{}
	}
	return termFor(sent, deadline.Sub(engineNow))
}

func (t term) endless() bool { return t.from.IsZero() }

// most is the longest of what is usual, what is wished for, and what is left at now:
// what to ask of the engine, in its milliseconds, so that nothing makes a lease shorter.
func (t term) most(now time.Time, wishes []extension) time.Duration {
	longest := max(t.usual, t.end().Sub(now))
	for _, x := range wishes {
		longest = max(longest, x.by)
	}
	if longest == t.usual {
		return longest
	}
	return (longest + time.Millisecond - 1).Truncate(time.Millisecond)
}

// renewed is the term after a renewal for a length that was asked for at sent.
func (t term) renewed(sent time.Time, length time.Duration) term { return term{sent, length, t.usual} }

// end is the deadline by the monotonic clock.
func (t term) end() time.Time { return t.from.Add(t.length) }

// due is when to renew the lease: half of a usual one before its end.
func (t term) due() time.Time { return t.from.Add(t.length - (t.usual - t.usual/2)) }

// ended reports whether the deadline has passed by the monotonic clock, which no
// step of the wall clock moves.
func (t term) ended(now time.Time) bool { return !t.endless() && !now.Before(t.end()) }

// doubtful reports whether the deadline has passed by any clock. While the machine
// is suspended the monotonic clock stands still and the wall clock goes on; who is
// about to begin something must believe the one that has seen more.
func (t term) doubtful(now time.Time) bool {
	return !t.endless() && (now.Sub(t.from) >= t.length || now.UnixNano()-t.from.UnixNano() >= int64(t.length))
}
