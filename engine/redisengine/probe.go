package redisengine

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/internal/duration"
)

// A shard of a cluster is down when its node does not answer. Leases skip it, and other calls
// give it little time. A background probe finds out when it answers again. If one shard is
// down others often are too, so the first probe asks all shards that are leased from.

var errDown = errors.New("its node of the cluster does not answer")

const (
	probePauseMin = 50 * time.Millisecond
	probePauseMax = time.Second
)

// isDown records that a shard does not answer.
func (e *Engine) isDown(s *shard) {
	s.down.Store(true)
	if e.ctx.Err() == nil && e.probing.CompareAndSwap(false, true) {
		e.tasks.Go(e.probe)
	}
}

// isBack records that a shard answers.
func (e *Engine) isBack(s *shard) {
	if s.down.CompareAndSwap(true, false) {
		s.doubt()
		e.watchers.Hint(s.queue)
	}
}

// probe asks shards that are down until none is left.
func (e *Engine) probe() {
	shards := e.leasedFrom()
	for pause := probePauseMin; e.ctx.Err() == nil; pause = min(2*pause, probePauseMax) {
		for i, wakes := range e.askWakes(e.ctx, shards) {
			if wakes == unknown {
				e.isDown(shards[i])
			} else {
				e.isBack(shards[i])
			}
		}
		if shards = e.downShards(); len(shards) > 0 {
			duration.Sleep(e.ctx, pause)
			continue
		}
		e.probing.Store(false)
		// A shard that went down in between found this probe still running.
		if shards = e.downShards(); len(shards) == 0 || !e.probing.CompareAndSwap(false, true) {
			return
		}
	}
}

func (e *Engine) downShards() []*shard {
	return e.shardsWhere(func(s *shard) bool { return s.down.Load() })
}

// leasedFrom returns the shards that are asked for messages.
func (e *Engine) leasedFrom() []*shard {
	return e.shardsWhere(func(s *shard) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.asked.IsZero() || s.down.Load()
	})
}

func (e *Engine) shardsWhere(is func(*shard) bool) (shards []*shard) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, q := range e.queues {
		for _, s := range q.shards {
			if is(s) {
				shards = append(shards, s)
			}
		}
	}
	return shards
}
