package engine

import "time"

// MaxSpread is the most by which the lease of an isolated message outlasts its TTR.
const MaxSpread = time.Minute

// Spread returns by how much the lease of an isolated message outlasts its TTR on the
// given attempt. Messages that were leased together when their process died are thus
// ready at different instants: those of one second attempt within 2 s of each other,
// of a third within 4 s, and so on up to MaxSpread. A first attempt has no spread, nor
// has the last, after which the message is dead.
//
// It is so plain that a script can work it out: see lua/shard.lua of package redisengine.
func (p *Policy) Spread(id ID, attempt uint32) time.Duration {
	if !p.Isolate || attempt < 2 || attempt >= p.MaxAttempts {
		return 0
	}
	window := min(MaxSpread, time.Second<<min(attempt-1, 6)).Milliseconds()
	return time.Duration(int64(uint32(id))*40503%window) * time.Millisecond
}

// Alone reports whether an isolated message whose lease has lapsed on the given attempt
// is granted alone: no other message of its queue is granted to the same Want; where a
// store keeps the queue in several parts (Limits.Shares), none of its part.
func (p *Policy) Alone(attempt uint32) bool { return p.Isolate && attempt >= 2 }
