package redisengine

import (
	"context"

	"github.com/redis/rueidis"
)

// answer is the answer to a command, or why there is none.
type answer struct {
	values []rueidis.RedisMessage // of a script of a shard: without the clock
	now    int64                  // of a script of a shard: the server's time in milliseconds
	us     int64                  // and in microseconds
	err    error
}

// send sends commands that answer with arrays, in a cluster to one node, in one round trip and
// waits for the answers while ctx lasts.
func (e *Engine) send(ctx context.Context, cmds ...rueidis.Completed) []answer {
	trip := e.trip
	if e.cluster() || e.shaky.Load() {
		trip = e.leavingTrip
	}
	got := trip(ctx, e.client, cmds...)
	answers := make([]answer, len(cmds))
	shaky := false
	for i := range answers {
		a := &answers[i]
		if a.err = ctx.Err(); got != nil {
			a.values, a.err = got[i].ToArray()
		}
		if a.err != nil {
			_, answered := rueidis.IsRedisErr(a.err)
			shaky = shaky || !answered
		}
	}
	if shaky {
		e.measured.failures.Add(1)
	}
	if shaky != e.shaky.Load() {
		e.shaky.Store(shaky)
	}
	return answers
}

// leavingTrip is trip, but returns nil when ctx ends: while the client connects it blocks for
// longer.
func (e *Engine) leavingTrip(ctx context.Context, client sender, cmds ...rueidis.Completed) []rueidis.RedisResult {
	done := make(chan []rueidis.RedisResult, 1)
	e.tasks.Go(func() { done <- e.trip(ctx, client, cmds...) })
	select {
	case got := <-done:
		return got
	case <-ctx.Done():
	}
	select {
	case got := <-done: // it came while this process was not scheduled
		return got
	default:
		return nil
	}
}
