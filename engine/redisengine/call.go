package redisengine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// How much goes into one script, which holds up the server while it runs.
const (
	scriptMessages = 1000
	scriptBytes    = 4 << 20
)

// batch gathers items into calls of a script, a shard each.
type batch struct {
	e     *Engine
	calls []*call
	open  map[*shard]*call
}

// call is one call of a script on one shard.
type call struct {
	shard *shard
	items []int // which of the caller's items
	args  []string
	bytes int
}

// add puts an item into the call of its shard.
func (b *batch) add(s *shard, item, bytes int, args ...string) {
	c := b.open[s]
	if c == nil || len(c.items) == scriptMessages || c.bytes+bytes > scriptBytes {
		c = &call{shard: s}
		b.calls = append(b.calls, c)
		if b.open == nil {
			b.open = make(map[*shard]*call)
		}
		b.open[s] = c
	}
	c.items = append(c.items, item)
	c.args = append(c.args, args...)
	c.bytes += bytes
}

// run calls the script for each shard, in the order of the items, and then gives each
// answer without the clock to done. Those of one shard run one after another, since
// what acts on one key must act in order.
func (b *batch) run(ctx context.Context, sc *script, done func(c *call, values []rueidis.RedisMessage, now int64, err error)) {
	for len(b.calls) > 0 {
		var now, later []*call
		taken := make(map[*shard]bool, len(b.calls))
		for _, c := range b.calls {
			if taken[c.shard] {
				later = append(later, c)
				continue
			}
			taken[c.shard] = true
			now = append(now, c)
		}
		b.calls = later
		reqs := make([]request, len(now))
		for i, c := range now {
			reqs[i] = request{sc, c.shard.keys, c.args}
			if sc != cancelScript {
				reqs[i].args = append([]string{b.e.channel, c.shard.hint}, c.args...)
			}
		}
		for i, a := range b.e.ask(ctx, reqs) {
			done(now[i], a.values, a.now, a.err)
		}
	}
}

// answer is what a script of a shard answered, without the clock.
type answer struct {
	values []rueidis.RedisMessage
	now    int64 // the clock, in milliseconds
	us     int64 // the same, in microseconds
	err    error
}

var errAnswer = fmt.Errorf("an answer of Redis is not understood: %w", errRecord)

// ask runs scripts of shards: it gives them the clock, and takes it off the answers.
func (e *Engine) ask(ctx context.Context, reqs []request) []answer {
	clock := e.clockArg()
	for i := range reqs {
		reqs[i].args = append([]string{clock}, reqs[i].args...)
	}
	sent := time.Now()
	replies := e.eval(ctx, reqs)
	now := time.Now()
	answers := make([]answer, len(reqs))
	astray := false
	for i, r := range replies {
		a := &answers[i]
		if a.err = r.err; a.err != nil {
			continue
		}
		if len(r.values) < 2 {
			a.err = errAnswer
			continue
		}
		us, err1 := r.values[0].AsInt64()
		raw, err2 := r.values[1].AsInt64()
		if err1 != nil || err2 != nil {
			a.err = errAnswer
			continue
		}
		a.us, a.now, a.values = us, us/1000, r.values[2:]
		switch {
		case us == 0: // it was not needed
		case us == raw:
			e.clock.told(us, sent, now)
		default:
			astray = true
		}
	}
	if astray && e.stopped == nil {
		e.astray()
	}
	return answers
}

// ask1 runs one script on a shard.
func (e *Engine) ask1(ctx context.Context, sc *script, s *shard, args ...string) answer {
	return e.ask(ctx, []request{{sc, s.keys, args}})[0]
}

// soon notes the soonest due that a script has told others of.
func (e *Engine) soon(s *shard, v *rueidis.RedisMessage) {
	due, err := v.AsInt64()
	if err != nil {
		return // nothing became the first to happen
	}
	if s.soon(due) {
		e.hint(s.queue)
	}
}

// appendInt appends a number as text.
func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
