package redisengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/internal/calls"
)

// Limits of one script call. A script blocks the server while it runs.
const (
	scriptMessages = 1000
	scriptBytes    = 4 << 20
)

// batch groups items into script calls, at least one for each shard.
type batch struct {
	e      *Engine
	unique bool // no call has a key twice
	room   int  // reserved arguments before those of the items, besides ahead
	calls  []*call
	open   map[*shard]*call // calls with room for items
	last   *call            // usually the next item belongs to it too
	until  calls.Bound      // of the first round; zero: counted from run
}

// call is one call of a script on one shard.
type call struct {
	shard *shard
	items []int // indexes of the caller's items
	args  []string
	bytes int
	keys  map[string]struct{} // where calls are unique

	how   []byte // action of each item, as the script reads it
	usual bool   // all actions are 0

	// Only for pushes, as lua/push.lua reads them.
	dues  []byte
	known *configured // settings that the policies were resolved with
}

// call returns the shard's call that takes the next item, which has this key.
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
	c = &call{shard: s, usual: true, args: make([]string, ahead+b.room, 64)}
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

// add appends an item to the call of its shard.
func (b *batch) add(s *shard, item, bytes int, how byte, args ...string) {
	c := b.call(s, "", bytes)
	c.items = append(c.items, item)
	c.do(how)
	c.args = append(c.args, args...)
}

// do appends the action for one item.
func (c *call) do(how byte) {
	c.how = append(c.how, how)
	c.usual = c.usual && how == 0
}

// hows returns the actions of all items, or "" if every action is the usual one.
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

// run calls the script on each shard and passes each answer, without the clock, to done.
// Calls of one shard run one after another, since operations on one key must keep their
// order. If a call gets no answer, the shard's later calls fail with the same error instead
// of each waiting for a timeout.
func (b *batch) run(ctx context.Context, sc *script, done func(c *call, values []rueidis.RedisMessage, now int64, err error)) {
	failed := make(map[*shard]error)
	until := b.until
	if until.Answer.IsZero() {
		until = b.e.patient()
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
		reqs := make([]request, len(now))
		for i, c := range now {
			reqs[i] = request{script: sc, shard: c.shard, args: c.args}
		}
		for i, a := range b.e.ask(ctx, reqs, until) {
			if a.err == nil && sc == pushScript {
				if a.err = difference(a.values); a.err != nil {
					failed[now[i].shard] = a.err
				}
			} else if a.err != nil && fateOf(a.err) != calls.Answered {
				failed[now[i].shard] = fmt.Errorf("%w: skipped after: %w", errNotAsked, a.err)
			}
			done(now[i], a.values, a.now, a.err)
		}
		until = b.e.patient()
	}
}

// ahead is the number of arguments that every script of a shard takes: see lua/shard.lua.
const ahead = 3

// with returns the arguments of a script of a shard.
func with(args ...string) []string { return append(make([]string, ahead, ahead+len(args)), args...) }

// errNotAsked is the error of a shard's calls after one that got no answer.
var errNotAsked = errors.New("no answer from Redis")

var errAnswer = fmt.Errorf("unexpected answer from Redis: %w", errRecord)

// downTimeout bounds the wait for a cluster shard that did not answer the last call.
const downTimeout = 500 * time.Millisecond

// ask runs scripts of shards. In a cluster each goes by itself, with a short timeout if its
// shard is down, so that calls to healthy shards do not wait for others.
func (e *Engine) ask(ctx context.Context, reqs []request, until calls.Bound) []answer {
	if !e.cluster() {
		return e.put(ctx, reqs, until)
	}
	answers := make([]answer, len(reqs))
	var wg sync.WaitGroup
	for i, r := range reqs {
		wg.Go(func() {
			bound := until
			if r.shard.down.Load() {
				bound = calls.Once(downTimeout + e.slack)
			}
			a := e.put(ctx, reqs[i:i+1], bound)[0]
			answers[i] = a
			// If ctx has ended, the caller has left.
			if _, told := rueidis.IsRedisErr(a.err); a.err != nil && !told && ctx.Err() == nil {
				e.isDown(r.shard)
			}
		})
	}
	wg.Wait()
	return answers
}

// put runs scripts of shards in one round trip. It adds the arguments that all of them take, and
// takes the clock off the answers.
func (e *Engine) put(ctx context.Context, reqs []request, until calls.Bound) []answer {
	for i := range reqs {
		r := &reqs[i]
		r.args[1], r.args[2] = e.common, r.shard.hint
		if r.keys = r.shard.keys; r.script.keeps {
			r.keys = append(slices.Clip(r.keys), r.shard.answers+strconv.FormatUint(e.asked.Add(1), 36))
		}
	}
	sent := time.Now()
	answers := e.eval(ctx, reqs, until)
	for i := range answers {
		a := &answers[i]
		if a.err != nil {
			if fateOf(a.err) != calls.Answered && ctx.Err() == nil {
				e.registry.doubt()
			}
			continue
		}
		if len(a.values) < 2 {
			a.err = errAnswer
			continue
		}
		us, err1 := a.values[0].AsInt64()
		raw, err2 := a.values[1].AsInt64()
		if err1 != nil || err2 != nil {
			a.err = errAnswer
			continue
		}
		a.us, a.now, a.values = us, us/1000, a.values[2:]
		e.heardClock(reqs[i].shard, raw, sent)
	}
	return answers
}

// ask1 runs one script on a shard.
func (e *Engine) ask1(ctx context.Context, sc *script, s *shard, args ...string) answer {
	return e.ask(ctx, []request{{script: sc, shard: s, args: with(args...)}}, e.patient())[0]
}

// soon records the earliest due time that a script has published.
func (e *Engine) soon(s *shard, v *rueidis.RedisMessage) {
	due, err := v.AsInt64()
	if err != nil {
		return // nothing is sooner than before
	}
	if s.soon(due) {
		e.watchers.Hint(s.queue)
	}
}

// appendInt appends a number as text.
func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }
