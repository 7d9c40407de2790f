package redisengine

import (
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// Watch calls fn whenever a queue may have something to lease sooner than the last
// Grant said. It hears of what other engines do by one subscription, which the first
// Watch begins and Close ends; whenever that was interrupted, all queues are hinted
// at.
func (e *Engine) Watch(fn func(queue string)) (stop func()) {
	stop = e.watchers.Watch(fn)
	if !e.calls.TryEnter() {
		return stop
	}
	defer e.calls.Leave()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.heard {
		e.heard = true
		e.tasks.Go(e.hear)
	}
	return stop
}

// hear listens to the hints of other engines until Close.
func (e *Engine) hear() {
	ctx := rueidis.WithOnSubscriptionHook(e.ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			e.hears.Store(true)
			e.measured.heard.Add(1)
			e.missed()
		}
	})
	for e.ctx.Err() == nil {
		// It returns when the connection breaks, among other reasons.
		err := e.client.Receive(ctx, e.client.B().Subscribe().Channel(e.channel).Build(), func(m rueidis.PubSubMessage) {
			e.told(m.Message)
		})
		e.hears.Store(false)
		pause := retryPauseMax
		if fateOf(err) == attempt.Answered { // it will not do better soon
			pause = Recheck
			e.log.Warn("tarry redis: hints cannot be listened to; messages that others push may be late by some seconds", "error", fault("watch", "", err), "again_in", pause)
		}
		e.rest(pause)
	}
}

// rest pauses, unless the engine is closed meanwhile.
func (e *Engine) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
	}
}

// told takes in a hint: the engine it is from, shard, queue and due.
func (e *Engine) told(hint string) {
	part := strings.Split(hint, " ")
	if len(part) != 4 || part[0] == e.origin {
		return // its own: known already
	}
	n, err1 := strconv.Atoi(part[1])
	due, err2 := strconv.ParseInt(part[3], 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	e.mu.RLock()
	q := e.queues[part[2]]
	e.mu.RUnlock()
	switch {
	case q == nil: // nobody here waits for it, but may look out for new ones
		if engine.CheckQueue("watch", part[2]) == nil {
			e.watchers.Hint(part[2])
		}
	case n >= 0 && n < len(q.shards) && q.shards[n].soon(due):
		e.watchers.Hint(q.name)
	}
}

// missed makes all that is known doubtful, since hints may have been lost.
func (e *Engine) missed() {
	e.registry.doubt()
	e.mu.RLock()
	queues := make([]*queue, 0, len(e.queues))
	for _, q := range e.queues {
		queues = append(queues, q)
	}
	e.mu.RUnlock()
	for _, q := range queues {
		for _, s := range q.shards {
			s.doubt()
		}
		e.watchers.Hint(q.name)
	}
}
