package work

import "time"

// term is how long a lease lasts by the clocks of this process. It never ends later than the
// lease does at the engine: it starts before the engine was asked, and its length is measured
// by the engine's clock.
type term struct {
	from   time.Time     // with wall and monotonic clock; zero: the lease has no end
	length time.Duration // to the deadline
	usual  time.Duration // the length after an ordinary renewal
}

// termFor returns the term of a lease of the given length, requested at sent.
func termFor(sent time.Time, length time.Duration) term { return term{sent, length, length} }

// termOf returns the term of a lease that was requested at sent and answered when the
// engine's clock read engineNow.
func termOf(deadline, engineNow, sent time.Time) term {
	if deadline.IsZero() {
		return term{}
	}
	return termFor(sent, deadline.Sub(engineNow))
}

func (t term) endless() bool { return t.from.IsZero() }

// renewalLength returns the length to ask the engine for, in whole milliseconds. It is the
// longest of the usual one, the extensions, and what is left at now, so that no renewal
// shortens a lease.
func (t term) renewalLength(now time.Time, extensions []extension) time.Duration {
	longest := max(t.usual, t.end().Sub(now))
	for _, x := range extensions {
		longest = max(longest, x.by)
	}
	if longest == t.usual {
		return longest
	}
	return (longest + time.Millisecond - 1).Truncate(time.Millisecond)
}

// renewed returns the term after a renewal for a length, requested at sent.
func (t term) renewed(sent time.Time, length time.Duration) term { return term{sent, length, t.usual} }

// end returns the deadline by the monotonic clock.
func (t term) end() time.Time { return t.from.Add(t.length) }

// due returns when to renew the lease: half its usual length before its end.
func (t term) due() time.Time { return t.from.Add(t.length - (t.usual - t.usual/2)) }

// ended reports whether the deadline has passed by the monotonic clock, which no
// step of the wall clock moves.
func (t term) ended(now time.Time) bool { return !t.endless() && !now.Before(t.end()) }

// doubtful reports whether the deadline has passed by either clock. It is for the moment
// before something starts: while the machine is suspended, the monotonic clock stops and
// only the wall clock goes on.
func (t term) doubtful(now time.Time) bool {
	return !t.endless() && (now.Sub(t.from) >= t.length || now.UnixNano()-t.from.UnixNano() >= int64(t.length))
}
