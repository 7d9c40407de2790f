package redisengine

import (
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
)

// Watch calls fn whenever a queue may have something to lease sooner than the last Grant
// said. One subscription receives the hints of other engines; the first Watch starts it, and
// Close ends it. After an interruption, all queues are hinted at.
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

// hear receives the hints of other engines until Close.
func (e *Engine) hear() {
	ctx := rueidis.WithOnSubscriptionHook(e.ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			e.hears.Store(true)
			e.measured.heard.Add(1)
			e.missed()
		}
	})
	for e.ctx.Err() == nil {
		// Receive also returns when the connection breaks.
		err := e.client.Receive(ctx, e.client.B().Subscribe().Channel(e.channel).Build(), func(m rueidis.PubSubMessage) {
			e.hinted(m.Message)
		})
		e.hears.Store(false)
		pause := retryPauseMax
		if fateOf(err) == calls.Answered { // refused: unlikely to change soon
			pause = Recheck
			e.log.Warn("tarry redis: cannot receive hints; messages pushed by other processes may be seconds late", "error", fault("watch", "", err), "again_in", pause)
		}
		duration.Sleep(e.ctx, pause)
	}
}

// hinted handles a hint, which names its engine, shard, queue and due time.
func (e *Engine) hinted(hint string) {
	part := strings.Split(hint, " ")
	if len(part) != 4 || part[0] == e.origin {
		return // our own hint
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
	case q == nil: // unknown here, but a watcher may want new queues
		if engine.CheckQueue("watch", part[2]) == nil {
			e.watchers.Hint(part[2])
		}
	case n >= 0 && n < len(q.shards) && q.shards[n].soon(due):
		e.watchers.Hint(q.name)
	}
}

// missed discards all cached knowledge of shards, because hints may have been lost.
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
