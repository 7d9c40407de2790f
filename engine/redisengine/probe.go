package redisengine

import (
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// A shard of a cluster is dark when its node does not answer. Leases skip dark shards
// instead of waiting for each. A background probe finds out when they answer again. If one
// shard is dark others often are too, so the first probe asks all shards that are leased
// from.

var errDark = errors.New("its node of the cluster does not answer")

const (
	probePauseMin = 50 * time.Millisecond
	probePauseMax = time.Second
)

// leaseFailed records that a shard could not be asked for messages. left reports that the
// caller's context ended first.
func (e *Engine) leaseFailed(s *shard, err error, left bool) {
	_, told := rueidis.IsRedisErr(err)
	switch {
	case left:
		s.doubt()
	case e.cluster() && !told:
		e.darken(s)
	default:
		// Do not ask again at once, nor long after the shard may be back.
		s.failed(e.clockOf(s))
	}
}

// darken excludes a shard from leases until a probe is answered.
func (e *Engine) darken(s *shard) {
	s.dark.Store(true)
	e.measured.downs.Add(1)
	if e.ctx.Err() == nil && e.probing.CompareAndSwap(false, true) {
		e.tasks.Go(e.probe)
	}
}

// probe asks dark shards until none is left.
func (e *Engine) probe() {
	shards := e.leasedFrom()
	for pause := probePauseMin; e.ctx.Err() == nil; pause = min(2*pause, probePauseMax) {
		for i, wakes := range e.askWakes(e.ctx, shards) {
			switch s := shards[i]; {
			case wakes == unknown:
				s.dark.Store(true)
				e.measured.downs.Add(1)
			case s.dark.CompareAndSwap(true, false):
				s.doubt()
				e.watchers.Hint(s.queue)
			}
		}
		if shards = e.darkShards(); len(shards) > 0 {
			e.rest(pause)
			continue
		}
		e.probing.Store(false)
		// A shard that darkened in between found this probe still running.
		if shards = e.darkShards(); len(shards) == 0 || !e.probing.CompareAndSwap(false, true) {
			return
		}
	}
}

func (e *Engine) darkShards() []*shard {
	return e.shardsWhere(func(s *shard) bool { return s.dark.Load() })
}

// leasedFrom returns the shards that are asked for messages.
func (e *Engine) leasedFrom() []*shard {
	return e.shardsWhere(func(s *shard) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.asked.IsZero() || s.dark.Load()
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
