package redisengine

import (
	"context"

	"github.com/redis/rueidis"
)

// result is the result of a command.
type result struct {
	message rueidis.RedisMessage
	err     error
}

// send sends commands, in a cluster to one node, in one round trip and waits for the answers
// while ctx lasts.
func (e *Engine) send(ctx context.Context, cmds []rueidis.Completed) []result {
	trip := e.trip
	if e.cluster() || e.shaky.Load() {
		trip = e.leavingTrip
	}
	got := trip(ctx, e.client, cmds...)
	results := make([]result, len(cmds))
	shaky := false
	for i := range results {
		r := &results[i]
		if r.err = ctx.Err(); got != nil {
			r.message, r.err = got[i].ToMessage()
		}
		if r.err != nil {
			_, answered := rueidis.IsRedisErr(r.err)
			shaky = shaky || !answered
		}
	}
	if shaky {
		e.measured.failures.Add(1)
	}
	if shaky != e.shaky.Load() {
		e.shaky.Store(shaky)
	}
	return results
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
