package redisengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine/internal/attempt"
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
	open   map[*shard]*call // those that may still take items
	last   *call            // mostly the next item is for the same
	until  attempt.Bound    // of the first round; zero: it begins with run
}

// call is one call of a script on one shard.
type call struct {
	shard *shard
	items []int // which of the caller's items
	args  []string
	bytes int
	keys  map[string]struct{} // where calls are unique

	how   []byte // what to do with each item, as the script reads it
	usual bool   // all of that is 0

	// Of pushes, as lua/push.lua reads them: the dues, and the blocks that the ids are of.
	dues        []byte
	known       *configured // what the policies were made by
	least, most uint64
}

// call returns the call of a shard that an item with a key goes into.
func (b *batch) call(s *shard, key string, bytes int) *call {
	c := b.last
	if c == nil || c.shard != s {
		c = b.open[s]
	}
	if c != nil {
		_, twice := c.keys[key]
		if !twice && len(c.items) < scriptMessages && c.bytes+bytes <= scriptBytes {
			c.note(key, bytes)
			b.last = c
			return c
		}
	}
	c = &call{shard: s, usual: true, least: math.MaxUint64, args: make([]string, ahead+b.room, 64)}
	if b.unique {
		c.keys = make(map[string]struct{})
	}
	c.note(key, bytes)
	if b.open == nil {
		b.open = make(map[*shard]*call)
	}
	b.calls = append(b.calls, c)
	b.open[s], b.last = c, c
	return c
}

// add puts an item into the call of its shard.
func (b *batch) add(s *shard, item, bytes int, how byte, args ...string) {
	c := b.call(s, "", bytes)
	c.items = append(c.items, item)
	c.do(how)
	c.args = append(c.args, args...)
}

// do adds to a call what to do with an item.
func (c *call) do(how byte) {
	c.how = append(c.how, how)
	c.usual = c.usual && how == 0
}

// hows is what to do with all items, left out when that is usual.
func (c *call) hows() string {
	if c.usual {
		return ""
	}
	return rueidis.BinaryString(c.how)
}

func (c *call) note(key string, bytes int) {
	c.bytes += bytes
	if c.keys != nil && key != "" {
		c.keys[key] = struct{}{}
	}
}

// run calls the script for each shard, in the order of the items, and then gives each
// answer without the clock to done. Those of one shard run one after another, since
// what acts on one key must act in order; after one that is not answered the others
// of the shard fail with it, lest each wait as long.
func (b *batch) run(ctx context.Context, sc *script, done func(c *call, values []rueidis.RedisMessage, now int64, err error)) {
	failed := make(map[*shard]error)
	until := b.until
	if until.Answer.IsZero() {
		until = patient()
	}
	for len(b.calls) > 0 {
		var now, later []*call
		taken := make(map[*shard]bool, len(b.calls))
		for _, c := range b.calls {
			switch {
			case failed[c.shard] != nil:
				done(c, nil, 0, failed[c.shard])
			case taken[c.shard]:
				later = append(later, c)
			default:
				taken[c.shard] = true
				now = append(now, c)
			}
		}
		b.calls = later
		qs := make([]question, len(now))
		for i, c := range now {
			qs[i] = question{script: sc, shard: c.shard, args: c.args}
		}
		for i, a := range b.e.ask(ctx, qs, until) {
			if a.err == nil && sc == pushScript {
				if a.err = difference(a.values); a.err != nil {
					failed[now[i].shard] = a.err
				}
			} else if a.err != nil && fateOf(a.err) != attempt.Answered {
				failed[now[i].shard] = fmt.Errorf("%w: not asked any more after: %w", errNotAsked, a.err)
			}
			done(now[i], a.values, a.now, a.err)
		}
		until = patient()
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

// errNotAsked is what becomes of calls of a shard after one that failed.
var errNotAsked = errors.New("no answer of Redis")

var errAnswer = fmt.Errorf("an answer of Redis is not understood: %w", errRecord)

// downPatience is how long a shard of a cluster may take to answer that did not answer
// when it was asked last.
const downPatience = 500 * time.Millisecond

// ask puts questions to shards. Those that are down, on a node of a cluster that is
// dead or hangs, are asked apart and without patience: they have shown before that
// they are, and the others must not wait for them.
func (e *Engine) ask(ctx context.Context, qs []question, until attempt.Bound) []answer {
	if !e.cluster() {
		return e.put(ctx, qs, until)
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
	some := func(which []int, until attempt.Bound) {
		part := make([]question, len(which))
		for n, i := range which {
			part[n] = qs[i]
		}
		for n, a := range e.put(ctx, part, until) {
			i := which[n]
			answers[i] = a
			// Who had no patience has not shown anything, nor has who left.
			if a.err == nil || !until.Tries.IsZero() && fateOf(a.err) != attempt.Answered && ctx.Err() == nil {
				qs[i].shard.down.Store(a.err != nil)
				if a.err != nil {
					e.measured.downs.Add(1)
				}
			}
		}
	}
	var wg sync.WaitGroup
	if len(down) > 0 {
		wg.Go(func() { some(down, attempt.Once(downPatience)) })
	}
	if len(up) > 0 {
		some(up, until)
	}
	wg.Wait()
	return answers
}

// put is ask without a difference: it tells the shards the clock, and takes it off the
// answers.
func (e *Engine) put(ctx context.Context, qs []question, until attempt.Bound) []answer {
	reqs := make([]request, len(qs))
	for i, q := range qs {
		q.args[1], q.args[2] = e.channel, q.shard.hint
		keys := q.shard.keys
		if q.script.keeps {
			keys = append(slices.Clip(keys), q.shard.answers+strconv.FormatUint(e.asked.Add(1), 36))
		}
		reqs[i] = request{script: q.script, keys: keys, args: q.args, shard: q.shard}
	}
	sent := time.Now()
	replies := e.eval(ctx, reqs, until)
	answers := make([]answer, len(qs))
	for i, r := range replies {
		a := &answers[i]
		if a.err = r.err; a.err != nil {
			if fateOf(a.err) != attempt.Answered && ctx.Err() == nil {
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
		e.heardClock(qs[i].shard, raw, sent)
	}
	return answers
}

// ask1 runs one script on a shard.
func (e *Engine) ask1(ctx context.Context, sc *script, s *shard, args ...string) answer {
	return e.ask(ctx, []question{{script: sc, shard: s, args: with(args...)}}, patient())[0]
}

// soon notes the soonest due that a script has told others of.
func (e *Engine) soon(s *shard, v *rueidis.RedisMessage) {
	due, err := v.AsInt64()
	if err != nil {
		return // nothing became the first to happen
	}
	if s.soon(due) {
		e.watchers.Hint(s.queue)
	}
}

// appendInt appends a number as text.
func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
