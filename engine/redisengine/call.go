package redisengine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
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
	e      *Engine
	unique bool // no call has a key twice
	room   int  // for arguments before those of the items, beside what every script is told
	calls  []*call
	open   []*call // those that may still take items, one for each shard
}

// call is one call of a script on one shard.
type call struct {
	shard *shard
	items []int // which of the caller's items
	args  []string
	bytes int
	keys  map[string]struct{} // where calls are unique

	// Of pushes, as lua/push.lua reads them: the dues, and what to do with each, which
	// is left out when that is usual for all.
	dues, how []byte
	usual     bool
}

// call returns the call of a shard that an item with a key goes into.
func (b *batch) call(s *shard, key string, bytes int) *call {
	var c *call
	at := slices.IndexFunc(b.open, func(c *call) bool { return c.shard == s })
	if at >= 0 {
		c = b.open[at]
		_, twice := c.keys[key]
		if !twice && len(c.items) < scriptMessages && c.bytes+bytes <= scriptBytes {
			c.note(key, bytes)
			return c
		}
	}
	c = &call{shard: s, usual: true, args: make([]string, ahead+b.room, 64)}
	if b.unique {
		c.keys = make(map[string]struct{})
	}
	c.note(key, bytes)
	b.calls = append(b.calls, c)
	if at >= 0 {
		b.open[at] = c
	} else {
		b.open = append(b.open, c)
	}
	return c
}

// add puts an item into the call of its shard.
func (b *batch) add(s *shard, item, bytes int, args ...string) {
	c := b.call(s, "", bytes)
	c.items = append(c.items, item)
	c.args = append(c.args, args...)
}

func (c *call) note(key string, bytes int) {
	c.bytes += bytes
	if c.keys != nil && key != "" {
		c.keys[key] = struct{}{}
	}
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
		qs := make([]question, len(now))
		for i, c := range now {
			qs[i] = question{sc, c.shard, c.args}
		}
		for i, a := range b.e.ask(ctx, qs, patience) {
			done(now[i], a.values, a.now, a.err)
		}
	}
}

// question is one call of a script on one shard. args has room ahead for what every
// script is told: see lua/shard.lua.
type question struct {
	script *script
	shard  *shard
	args   []string
}

// ahead is how many arguments that is.
const ahead = 3

// with makes arguments with room ahead.
func with(args ...string) []string { return append(make([]string, ahead, ahead+len(args)), args...) }

// answer is what a script of a shard answered, without the clock.
type answer struct {
	values []rueidis.RedisMessage
	now    int64 // the clock, in milliseconds
	us     int64 // the same, in microseconds
	err    error
}

var errAnswer = fmt.Errorf("an answer of Redis is not understood: %w", errRecord)

// downPatience is how long a shard of a cluster may take to answer that did not answer
// when it was asked last.
const downPatience = 500 * time.Millisecond

// ask puts questions to shards. Those that are down, on a node of a cluster that is
// dead or hangs, are asked apart and without patience: they have shown before that
// they are, and the others must not wait for them.
func (e *Engine) ask(ctx context.Context, qs []question, patience time.Duration) []answer {
	if !e.cluster() {
		return e.put(ctx, qs, patience)
	}
	answers := make([]answer, len(qs))
	var up, down []int
	for i, q := range qs {
		if q.shard.down.Load() {
			down = append(down, i)
		} else {
			up = append(up, i)
		}
	}
	some := func(ctx context.Context, which []int, patience time.Duration) {
		part := make([]question, len(which))
		for n, i := range which {
			part[n] = qs[i]
		}
		for n, a := range e.put(ctx, part, patience) {
			i := which[n]
			answers[i] = a
			// Who had no patience has not shown anything.
			if a.err == nil || patience > 0 && !answered(a.err) {
				qs[i].shard.down.Store(a.err != nil)
			}
		}
	}
	var wg sync.WaitGroup
	if len(down) > 0 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, downPatience)
			defer cancel()
			some(ctx, down, 0)
		})
	}
	if len(up) > 0 {
		some(ctx, up, patience)
	}
	wg.Wait()
	return answers
}

// put is ask without a difference: it tells the shards the clock, and takes it off the
// answers.
func (e *Engine) put(ctx context.Context, qs []question, patience time.Duration) []answer {
	clock := e.clockArg()
	reqs := make([]request, len(qs))
	for i, q := range qs {
		q.args[0], q.args[1], q.args[2] = clock, e.channel, q.shard.hint
		reqs[i] = request{q.script, q.shard.keys, q.args}
	}
	sent := time.Now()
	replies := e.eval(ctx, reqs, patience)
	now := time.Now()
	answers := make([]answer, len(qs))
	astray := false
	for i, r := range replies {
		a := &answers[i]
		if a.err = r.err; a.err != nil {
			if !answered(a.err) {
				e.registry.doubt()
			}
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
		if us != 0 && e.stopped == nil { // else it was not needed
			e.clock.told(us, sent, now)
			qs[i].shard.clock.told(us, sent, now)
			astray = astray || us != raw
		}
	}
	if astray {
		e.astray()
	}
	return answers
}

// ask1 runs one script on a shard.
func (e *Engine) ask1(ctx context.Context, sc *script, s *shard, args ...string) answer {
	return e.ask(ctx, []question{{sc, s, with(args...)}}, patience)[0]
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
