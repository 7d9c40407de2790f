package redisengine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// visit is the work for one want.
type visit struct {
	e       *Engine
	want    engine.Want
	q       *queue
	us      int64   // the latest clock seen, in microseconds
	open    []*stop // to call in this round
	looked  []*stop // named their candidates; no messages taken yet
	asked   int
	failed  int
	cause   error
	granted engine.Granted
}

// stop is one shard of a visit.
type stop struct {
	shard  *shard
	turns  uint64
	look   bool // ask for candidates before taking any
	share  int  // how many messages to take
	takers []engine.Taker
	secret string // of the leases
	heads  []head // its candidates
	bytes  int    // most bytes of bodies
	swept  int    // how often it had more to sweep
}

// sweeps bounds how often in a row a shard may answer that it has more to sweep. Then the
// want is answered with "more", so that wants of other queues do not wait.
const sweeps = 20

// head is a message that could be leased.
type head struct {
	priority, due int64
	id            string
}

func (a head) compare(b head) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
}

// begin selects the shards to ask.
func (v *visit) begin() {
	local := time.Now()
	for _, s := range v.q.shards {
		if s.down.Load() {
			v.asked++
			v.failed++
			v.cause = errDown
			continue
		}
		if is, turns := s.check(v.e.clockOf(s), local); is == due || !v.e.hears.Load() {
			v.open = append(v.open, &stop{shard: s, turns: turns, share: min(v.want.Max, scriptMessages), takers: v.want.Takers, bytes: engine.AnswerBytes})
		}
	}
	v.asked += len(v.open)
	for _, s := range v.open {
		s.look = len(v.open) > 1
	}
}

// recheck asks shards without recent news whether they have published hints since: one small
// command each. If not, they need not be asked for messages.
func (e *Engine) recheck(ctx context.Context, visits []*visit) {
	local := time.Now()
	var shards []*shard
	for _, v := range visits {
		for _, s := range v.q.shards {
			if is, _ := s.check(v.e.clockOf(s), local); is == old && e.hears.Load() && !s.down.Load() {
				shards = append(shards, s)
			}
		}
	}
	if len(shards) == 0 {
		return
	}
	for i, wakes := range e.askWakes(ctx, shards) {
		if wakes == unknown && e.cluster() && ctx.Err() == nil {
			e.isDown(shards[i])
		}
		shards[i].confirm(wakes, local)
	}
}

// wakesScript also returns the time, since the server's clock may have stepped. It is sent
// whole each time: EVALSHA with its fallback would cost more than its length.
const wakesScript = `local time = redis.call('TIME')
local answer = {time[1] * 1000000 + time[2]}
for i, key in ipairs(KEYS) do
	local wakes = redis.pcall('HGET', key, 'wakes')
	answer[i + 1] = tonumber(type(wakes) ~= 'table' and (wakes or 0)) or -2
end
return answer`

// askWakes asks shards, with a short timeout, how often they have woken others; unknown for
// a shard that does not answer. The client itself would retry again and again.
func (e *Engine) askWakes(ctx context.Context, shards []*shard) []int64 {
	some := scriptMessages // per command
	if e.cluster() {
		some = 1
	}
	ctx, cancel := context.WithTimeout(ctx, shardTimeout+e.slack)
	defer cancel()
	all := make([]int64, len(shards))
	var wg sync.WaitGroup
	for from := 0; from < len(shards); from += some {
		to := min(from+some, len(shards))
		wg.Go(func() { e.askWakesOnce(ctx, shards[from:to], all[from:to]) })
	}
	wg.Wait()
	return all
}

// askWakesOnce is askWakes by one command.
func (e *Engine) askWakesOnce(ctx context.Context, shards []*shard, wakes []int64) {
	keys := make([]string, len(shards))
	for i, s := range shards {
		keys[i] = s.keys[metaKey]
	}
	sent := time.Now()
	a := e.send(ctx, e.client.B().EvalRo().Script(wakesScript).Numkeys(int64(len(keys))).Key(keys...).Build())[0]
	if a.err == nil && len(a.values) == 1+len(shards) {
		if us, err := a.values[0].AsInt64(); err == nil {
			e.heardClock(shards[0], us, sent)
		}
		for i := range wakes {
			wakes[i], _ = a.values[1+i].AsInt64()
		}
		return
	}
	what := int64(unknown)
	if fateOf(a.err) == calls.Answered {
		what = unreadable
	}
	for i := range wakes {
		wakes[i] = what
	}
}

// visit makes rounds of calls until each shard has answered. A round is one round trip for
// all wants. The calls outlast their caller's context: package calls releases what comes too late.
// A node of a cluster that hangs gets little time; its scripts do nothing after that.
func (e *Engine) visit(visits []*visit) {
	for {
		var reqs []request
		var owners []*visit
		var stops []*stop
		for _, v := range visits {
			for _, s := range v.open {
				args := v.args(s)
				reqs = append(reqs, request{script: leaseScript, shard: s.shard, args: args})
				owners, stops = append(owners, v), append(stops, s)
			}
			v.open = nil
		}
		if len(reqs) == 0 {
			return
		}
		until := e.patient()
		if e.cluster() {
			until = calls.Once(shardTimeout + e.slack)
		}
		for i, a := range e.ask(e.ctx, reqs, until) {
			owners[i].take(stops[i], a)
		}
		for _, v := range visits {
			v.divide()
		}
	}
}

// leaseHead is the number of values before the messages in an answer to a lease.
const leaseHead = 6

func (v *visit) args(s *stop) []string {
	mode := "lease"
	switch {
	case s.look:
		mode = "look"
	case v.e.forget:
		mode = "forget"
	}
	s.secret = newSecret()
	args := with(mode, strconv.Itoa(s.share), ttrArg(v.want.TTR), s.secret, strconv.Itoa(s.bytes))
	for _, t := range s.takers {
		args = append(args, t.Worker, strconv.Itoa(t.Max))
	}
	return append(args, v.want.Worker)
}

// take records the answer of one shard.
func (v *visit) take(s *stop, a answer) {
	if a.err == nil && len(a.values) < leaseHead {
		a.err = errAnswer
	}
	if a.err != nil {
		v.failed++
		v.cause = a.err
		s.shard.failed(v.e.clockOf(s.shard))
		return
	}
	v.us = max(v.us, a.us)
	more, _ := a.values[0].AsInt64()
	again, _ := a.values[1].AsInt64()
	if again != 0 {
		if s.swept++; s.swept < sweeps {
			v.open = append(v.open, s)
			return
		}
		v.granted.More = true
		s.shard.learn(0, false, unknown, s.turns, time.Now())
		return
	}
	next := int64(never)
	if n, err := a.values[2].AsInt64(); err == nil {
		next = n
	}
	messages := a.values[leaseHead:]
	if s.look {
		if s.heads = readHeads(messages); len(s.heads) > 0 {
			v.looked = append(v.looked, s)
			return
		}
	}
	wakes, _ := a.values[3].AsInt64()
	expired, _ := a.values[4].AsInt64()
	died, _ := a.values[5].AsInt64()
	v.granted.Expired += int(expired)
	v.granted.Died += int(died)
	if more == 1 {
		v.granted.More = true
		next = 0
	}
	v.granted.Messages = slices.Grow(v.granted.Messages, len(messages)/4)
	for i := 0; i+4 <= len(messages); i += 4 {
		l, err := v.e.leased(v.q, messages[i:i+4], a.now)
		if err != nil {
			continue // a damaged message must not stop the others; it lapses until dead
		}
		v.granted.Messages = append(v.granted.Messages, l)
		if !v.want.Remote && !v.e.forget {
			v.e.held.Add(&l, takenWith(&l, s.secret), time.UnixMilli(a.now))
		}
	}
	s.shard.learn(next, more == 2, wakes, s.turns, time.Now())
}

// Timeouts for cluster shards: how long a lease may take, and how long a failing shard is
// skipped, doubling, while other shards of its queue answer.
const (
	shardTimeout  = time.Second
	shardPauseMin = 100 * time.Millisecond
	shardPauseMax = 3 * time.Second
)

func readHeads(values []rueidis.RedisMessage) []head {
	heads := make([]head, 0, len(values)/3)
	for i := 0; i+3 <= len(values); i += 3 {
		var h head
		h.priority, _ = values[i].AsInt64()
		h.due, _ = values[i+1].AsInt64()
		h.id, _ = values[i+2].ToString()
		heads = append(heads, h)
	}
	return heads
}

// divide distributes the want over the shards once all have named their candidates: each
// gives those of its candidates that come first over all shards, to the worker whose turn it is.
func (v *visit) divide() {
	if len(v.open) > 0 || len(v.looked) == 0 {
		return
	}
	type owned struct {
		head
		s *stop
	}
	var all []owned
	for _, s := range v.looked {
		for _, h := range s.heads {
			all = append(all, owned{h, s})
		}
		s.share, s.takers, s.look, s.heads = 0, nil, false, nil
	}
	slices.SortFunc(all, func(a, b owned) int { return a.compare(b.head) })
	for i, o := range all[:min(len(all), v.want.Max, scriptMessages)] {
		o.s.share++
		if len(v.want.Takers) > 0 {
			o.s.takers = append(o.s.takers, engine.Taker{Worker: v.want.TakerOf(i).Worker, Max: 1})
		}
	}
	for _, s := range v.looked {
		if s.share > 0 {
			v.open = append(v.open, s)
		} else {
			v.granted.More = true
			s.shard.learn(0, false, unknown, s.turns, time.Now())
		}
	}
	for _, s := range v.open {
		s.bytes = engine.AnswerBytes / len(v.open)
	}
	v.looked = nil
}

// conclude returns the answer to the want as of now.
func (v *visit) conclude(now time.Time) engine.Granted {
	g := v.granted
	switch {
	case g.Err != nil:
		return g
	case v.failed > 0 && v.failed == v.asked && (v.failed == len(v.q.shards) || fateOf(v.cause) == calls.Answered):
		g.Err = fault("lease", v.want.Queue, v.cause)
		return g
	}
	if v.asked > 1 {
		slices.SortFunc(g.Messages, func(a, b engine.Lease) int {
			return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
		})
	}
	if g.More {
		return g
	}
	for _, s := range v.q.shards {
		next := s.known()
		g.Held = g.Held || s.holdsBack()
		if next == never || s.down.Load() { // a shard that is down reports when it is back
			continue
		}
		at := time.UnixMilli(next).UTC()
		if left := at.Sub(now); left <= 0 || left < Recheck && v.e.cluster() {
			// The clock of the shard's server counts, which may differ from ours.
			at = now.Add(max(time.Millisecond, at.Sub(v.e.clockOf(s)))).Truncate(time.Millisecond)
		}
		if g.NextDue.IsZero() || at.Before(g.NextDue) {
			g.NextDue = at
		}
	}
	return g
}
