package redisengine

import (
	"context"
	"time"
)

// reclaim gives back, in the background, what a call leased whose answer was lost:
// nobody has the tokens, and the messages would stand idle until their leases lapse.
// It tries until it has been through all leases of the shard once.
func (e *Engine) reclaim(s *shard, seed string) {
	if e.ctx.Err() != nil {
		return
	}
	e.tasks.Go(func() {
		score, id := "", ""
		for pause := retryPauseMin; e.ctx.Err() == nil; {
			ctx, cancel := context.WithTimeout(e.ctx, ioTimeout)
			a := e.ask1(ctx, reclaimScript, s, seed, score, id)
			cancel()
			switch {
			case a.err != nil:
				e.rest(pause)
				pause = min(2*pause, time.Second)
				continue
			case len(a.values) < 3:
				s.doubt()
				e.hint(s.queue)
				return
			}
			score, _ = a.values[1].ToString()
			id, _ = a.values[2].ToString()
		}
	})
}
