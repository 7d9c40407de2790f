package redisengine

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// A lease whose answer is lost has leased messages that nobody knows of, and which would
// stand idle until their leases lapse. So each lease notes in Redis what it takes, under
// a name that its engine knows: the engine's own and a lane, which is no other call's
// as long as the answer is awaited. The note is written over by the next lease of the
// lane, or lapses by itself. To give back what a call took is then no more work than
// the call was, however many leases there are.

// A shard has so many lanes; a call beyond them goes without a note.
const maxLanes = 64

// takenFor is how long a note lasts. An answer lost for longer is only made good when the
// leases lapse.
const takenFor = 10 * time.Minute

var takenMillis = strconv.FormatInt(takenFor.Milliseconds(), 10)

// noLane is what a call has that does without.
const noLane = -1

// lane takes a lane of the shard; noLane: all are taken.
func (s *shard) lane() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := bits.TrailingZeros64(^s.lanes)
	if n == maxLanes {
		return noLane
	}
	s.lanes |= 1 << n
	for len(s.laneKeys) <= n {
		s.laneKeys = append(s.laneKeys, append(slices.Clip(s.keys), s.taken+strconv.Itoa(len(s.laneKeys))))
	}
	return n
}

// keysOf are the keys of a lease in a lane.
func (s *shard) keysOf(lane int) []string {
	if lane < 0 {
		return s.keys
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.laneKeys[lane]
}

func (s *shard) leaveLane(lane int) {
	if lane < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes &^= 1 << lane
}

// reclaimLease gives back, in the background, what a lease took whose answer was lost,
// and then leaves its lane.
func (e *Engine) reclaimLease(s *shard, seed string, lane int) {
	if lane < 0 {
		return // the leases lapse
	}
	keys := s.keysOf(lane)
	e.reclaim(s, func(looked int) question {
		return question{script: reclaimScript, shard: s, keys: keys, args: with(seed, "", "", strconv.Itoa(looked))}
	}, func() { s.leaveLane(lane) })
}

// reclaimClaim does so for the one message that a claim took.
func (e *Engine) reclaimClaim(s *shard, seed, id, key string) {
	e.reclaim(s, func(int) question {
		return question{script: reclaimScript, shard: s, args: with(seed, id, key, "0")}
	}, func() {})
}

// reclaimChunk is how many messages a script gives back: CHUNK of lua/shard.lua.
const reclaimChunk = 500

// reclaim asks until nothing is left to give back.
func (e *Engine) reclaim(s *shard, ask func(looked int) question, done func()) {
	if e.ctx.Err() != nil {
		return
	}
	e.tasks.Go(func() {
		defer done()
		giveUp := time.Now().Add(takenFor)
		looked := 0
		for pause := retryPauseMin; e.ctx.Err() == nil && time.Now().Before(giveUp); {
			ctx, cancel := context.WithTimeout(e.ctx, ioTimeout)
			a := e.ask(ctx, []question{ask(looked)}, patient())[0]
			cancel()
			if a.err == nil && len(a.values) != 2 {
				a.err = errAnswer
			}
			if a.err != nil {
				e.rest(pause)
				pause = min(2*pause, time.Second)
				continue
			}
			looked += reclaimChunk
			if more, _ := a.values[1].AsInt64(); more == 0 {
				s.doubt()
				e.hint(s.queue)
				return
			}
		}
	})
}
