package redisengine

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// A lease or claim whose answer is lost has leased messages that nobody knows of, and which
// would stand idle until their leases lapse. So each notes in Redis what it takes, under
// a name that its engine knows: the engine's own and a lane, which is no other call's
// as long as the answer is awaited. The note is written over by the next call of the
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

// keysOf are the keys of a call in a lane.
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

// reclaimChunk is how many messages a script gives back: CHUNK of lua/shard.lua.
const reclaimChunk = 500

// reclaim gives back, in the background, what a call took whose answer was lost, until
// nothing is left to give back, and then leaves its lane.
func (e *Engine) reclaim(s *shard, secret string, lane int) {
	if lane == noLane || e.ctx.Err() != nil {
		return // the leases lapse
	}
	e.tasks.Go(func() {
		defer s.leaveLane(lane)
		giveUp := time.Now().Add(takenFor)
		looked := 0
		pause := attempt.Pause{Least: retryPauseMin, Most: time.Second}
		for e.ctx.Err() == nil && time.Now().Before(giveUp) {
			q := question{script: reclaimScript, shard: s, keys: s.keysOf(lane), args: with(secret, strconv.Itoa(looked))}
			ctx, cancel := context.WithTimeout(e.ctx, ioTimeout)
			a := e.ask(ctx, []question{q}, patient())[0]
			cancel()
			if a.err == nil && len(a.values) != 2 {
				a.err = errAnswer
			}
			if a.err != nil {
				pause.Wait(e.ctx)
				continue
			}
			looked += reclaimChunk
			if more, _ := a.values[1].AsInt64(); more == 0 {
				s.doubt()
				e.watchers.Hint(s.queue)
				return
			}
		}
	})
}
