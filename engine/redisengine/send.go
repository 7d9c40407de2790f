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

// send sends commands in one round trip and waits for the answers while ctx lasts. The
// client itself may block longer while it connects. A cluster client returns no answer
// before it has all, so in a cluster each command is sent separately: a silent node then
// delays only its own.
func (e *Engine) send(ctx context.Context, cmds []rueidis.Completed) []result {
	results := make([]result, len(cmds))
	part := 1
	if !e.cluster() {
		part = len(cmds)
	}
	if part == len(cmds) && !e.cluster() && !e.shaky.Load() {
		for i, r := range e.trip(ctx, e.client, cmds...) {
			results[i].message, results[i].err = r.ToMessage()
		}
	} else {
		e.sendApart(ctx, cmds, part, results)
	}
	shaky := false
	for _, r := range results {
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

// sendApart sends commands in parts of the given size, in parallel.
func (e *Engine) sendApart(ctx context.Context, cmds []rueidis.Completed, part int, results []result) {
	type answers struct {
		from int
		of   []rueidis.RedisResult
	}
	parts := 0
	done := make(chan answers, len(cmds))
	for from := 0; from < len(cmds); from += part {
		parts++
		e.tasks.Go(func() { done <- answers{from, e.trip(ctx, e.client, cmds[from:from+part]...)} })
	}
	take := func(a answers) {
		for i, r := range a.of {
			results[a.from+i].message, results[a.from+i].err = r.ToMessage()
		}
		parts--
	}
	for i := range results {
		results[i].err = context.DeadlineExceeded // until an answer arrives
	}
	for parts > 0 {
		select {
		case a := <-done:
			take(a)
			continue
		default:
		}
		select {
		case a := <-done:
			take(a)
		case <-ctx.Done():
			for i := range results {
				if results[i].err == context.DeadlineExceeded {
					results[i].err = ctx.Err()
				}
			}
			return
		}
	}
}
