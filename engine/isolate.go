package engine

import "time"

// MaxSpread is the most by which the lease of an isolated message outlasts its TTR.
const MaxSpread = time.Minute

// Spread returns by how much the lease of an isolated message outlasts its TTR on the given
// attempt. Messages that were leased together when their process died are thus ready again at
// different instants. They are up to 2 s apart after the second attempt and 4 s after the
// third, doubling up to MaxSpread. The first attempt has no spread, nor has the last, after
// which the message is dead.
//
// The Lua scripts of package redisengine compute the same in lua/shard.lua.
func (p *Policy) Spread(id ID, attempt uint32) time.Duration {
	if !p.Isolate || attempt < 2 || attempt >= p.MaxAttempts {
		return 0
	}
	window := min(MaxSpread, time.Second<<min(attempt-1, 6)).Milliseconds()
	return time.Duration(int64(uint32(id))*40503%window) * time.Millisecond
}

// Alone reports whether an isolated message is leased alone after a lapse on the given attempt.
// The same Want then gets no other message of its queue. If the store divides a queue into parts
// (Limits.Shares), that holds for its part.
func (p *Policy) Alone(attempt uint32) bool { return p.Isolate && attempt >= 2 }
