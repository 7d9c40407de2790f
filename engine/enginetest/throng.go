package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// The parameters of a throng: its members, the keys of each besides the shared ones, the
// calls between two checks, and the number of checks.
const (
	members      = 8
	memberKeys   = 20
	memberCalls  = 60
	throngRounds = 5
)

// throng is many concurrent callers on the same queues, while chores run, time passes, and
// the engine may be ended.
type throng struct {
	*bed
	*book
	e     engine.Whole
	fault *Fault // fault that may strike in this round; nil: none
}

// RunThrong runs many concurrent callers on an engine. No model can predict each answer, so
// it checks rules that hold in any order. No message is lost, early, leased twice at a time,
// or leased after its end. Ids and keys are unique, and counts match lists. Between rounds,
// each of the harness's Anywhere faults ends the engine in turn. The harness must have a
// clock.
func RunThrong(t *testing.T, h Harness) {
	b := newBed(t, h)
	seed, ok := b.seed()
	if !ok {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	if h.Seed != nil {
		h.Seed(seed)
	}
	c := &throng{bed: b, book: newBook(t, h.Clock.Now), e: h.Open(t).(engine.Whole)}
	defer func() {
		if err := c.e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 3))
	for round := range throngRounds {
		if c.fault = nil; len(h.Faults) > 0 && round%2 == 1 {
			c.fault = &h.Faults[r.IntN(len(h.Faults))]
			c.fault.Arm(c.e, 1+r.IntN(40*int(c.fault.most())))
		}
		c.round(r)
		if c.fault != nil {
			happened := c.fault.Disarm(c.e)
			again := c.fault.Reopen(t, c.e)
			if happened && again == engine.Engine(c.e) && h.Crash != nil {
				again = h.Crash(t, again) // the fault may still end the engine
			}
			if again != engine.Engine(c.e) {
				c.e = again.(engine.Whole)
				c.ended()
			}
		}
		if !t.Failed() {
			c.check()
		}
		if t.Failed() {
			t.Fatalf("replay with TARRY_TEST_SEED=%d, some times: it is another order each time", seed)
		}
	}
	c.drain()
}

// round lets all members make their calls.
func (c *throng) round(r *rand.Rand) {
	var calls, beside sync.WaitGroup
	done := make(chan struct{})
	for m := range members {
		own := rand.New(rand.NewPCG(r.Uint64(), 4))
		calls.Go(func() {
			for range memberCalls {
				if !c.member(m, own) || c.Failed() {
					return
				}
			}
		})
	}
	own := rand.New(rand.NewPCG(r.Uint64(), 5))
	beside.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			c.h.Clock.Advance(pick([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, 5 * time.Second}, own.Uint32()))
			if len(c.h.Chores) == 0 {
				continue
			}
			chore := pick(c.h.Chores, own.Uint32())
			if err := chore.Do(c.e); err != nil && c.fault == nil {
				c.Errorf("%s: %v", chore.Name, err)
			}
		}
	})
	calls.Wait()
	close(done)
	beside.Wait()
}

// queueOf returns the queue of a key: each key belongs to one queue.
func (c *throng) queueOf(key string) string { return c.bed.queue + "-" + key[:1] }

// over reports whether a call failed because of a fault. Any other failure fails the test.
func (c *throng) over(what string, err error) bool {
	if err == nil {
		return false
	}
	if code := engine.Code(err); c.fault == nil || code != "unavailable" && code != "internal" && !errors.Is(err, engine.ErrNoSpace) {
		c.Errorf("%s: %v", what, err)
	}
	return true
}

// member makes one call, and reports whether to continue.
func (c *throng) member(m int, r *rand.Rand) bool {
	n := r.IntN(memberKeys)
	key := fmt.Sprintf("%d-%d-%d", n%3, m, n)
	queue, ctx := c.queueOf(key), c.Context()
	when := engine.When{In: pick([]time.Duration{0, 0, time.Millisecond, time.Second, time.Minute, 50 * time.Hour}, r.Uint32())}
	if r.IntN(30) == 0 {
		c.purging(key[:1])
		_, err := c.e.Purge(ctx, queue, engine.PurgeAlso(r.IntN(4)))
		c.purged(key[:1])
		return !c.over("purge", err)
	}
	switch r.IntN(15) {
	case 14:
		return c.look(queue, c.live(key))
	case 13:
		return c.claimIf(queue, c.live(key), r)
	case 12:
		return c.together(r)
	case 0, 1, 2, 3:
		msg := c.message(key, when, engine.Conflict(r.IntN(5)), r)
		c.pushing(key)
		res, err := c.e.Push(ctx, []engine.Message{msg})
		if c.over("push", err) || res[0].Err != nil && (engine.Code(res[0].Err) == "unavailable") && c.over("push", res[0].Err) {
			return false
		}
		c.answered(key, res[0])
	case 4:
		id := c.live(key)
		if id == 0 {
			return true
		}
		c.ending(id)
		errs, err := c.e.Cancel(ctx, []engine.Ref{{Queue: queue, ID: id}})
		if c.over("cancel", err) || engine.Code(errs[0]) == "unavailable" && c.over("cancel", errs[0]) {
			return false
		}
		c.settledEnd(id, "cancelled", errs[0] == nil)
	case 5:
		_, err := c.e.Reschedule(ctx, engine.Ref{Queue: queue, Key: key}, when)
		if code := engine.Code(err); code != "not_found" && code != "leased" && c.over("reschedule", err) {
			return false
		}
	case 6:
		_, err := c.e.Get(ctx, engine.Ref{Queue: queue, Key: key})
		if !errors.Is(err, engine.ErrNotFound) && c.over("get", err) {
			return false
		}
	case 7:
		_, err := c.e.Redrive(ctx, queue, nil, 3)
		return !c.over("redrive", err)
	default:
		return c.work(queue, r)
	}
	return true
}

// message returns a message to push that never expires.
func (c *throng) message(key string, when engine.When, on engine.Conflict, r *rand.Rand) engine.Message {
	return engine.Message{
		Queue: c.queueOf(key), Key: key, Due: when, OnConflict: on,
		Content: engine.Content{Body: fmt.Appendf(nil, "%s:%d", key, r.Uint32())},
		Terms:   engine.Terms{TTR: time.Minute, MaxAttempts: 3, Backoff: []time.Duration{time.Second}, ExpireAfter: engine.Never, Remember: engine.Never},
	}
}

// together pushes some messages with shared keys as one.
func (c *throng) together(r *rand.Rand) bool {
	p, ok := c.e.(engine.AtomicPusher)
	if !ok {
		return true
	}
	first, from := r.IntN(3), r.IntN(4)
	var msgs []engine.Message
	for n := range 3 {
		key := fmt.Sprintf("%d-all-%d", first, from+n)
		msgs = append(msgs, engine.Message{
			Queue: c.queueOf(key), Key: key, Due: engine.When{In: time.Minute}, OnConflict: engine.Conflict(r.IntN(5)),
			Content: engine.Content{Body: fmt.Appendf(nil, "%s:%d", key, r.Uint32())},
			Terms:   engine.Terms{TTR: time.Minute, MaxAttempts: 3, Backoff: []time.Duration{time.Second}, ExpireAfter: engine.Never, Remember: pick([]time.Duration{engine.Never, 10 * time.Second, 10 * time.Minute}, r.Uint32())},
		})
		c.pushing(key)
	}
	res, err := p.PushAtomic(c.Context(), msgs)
	if !errors.Is(err, engine.ErrExists) && !errors.Is(err, engine.ErrLeased) && c.over("push as one", err) {
		return false
	}
	for i := range msgs {
		answer := engine.PushResult{Err: err} // if the push fails, no message has a result
		if err == nil {
			answer = res[i]
		}
		c.answered(msgs[i].Key, answer)
	}
	return true
}

// work leases some messages and settles most of them.
func (c *throng) work(queue string, r *rand.Rand) bool {
	ttr := pick([]time.Duration{time.Hour, time.Hour, 50 * time.Millisecond}, r.Uint32())
	began := c.instant()
	g, err := c.e.Lease(c.Context(), []engine.Want{{Queue: queue, Max: 1 + r.IntN(5), TTR: ttr, Remote: r.IntN(2) == 0}})
	if c.over("lease", err) || c.over("lease", g.Queues[0].Err) {
		return false
	}
	for _, l := range g.Queues[0].Messages {
		c.leased(l, g.Now, began)
	}
	return c.settleMost(g.Queues[0].Messages, r)
}

// claimIf claims a message in some state and settles it most times.
func (c *throng) claimIf(queue string, id engine.ID, r *rand.Rand) bool {
	if id == 0 || !c.caps.ClaimIf {
		return true
	}
	state := engine.Scheduled + engine.State(r.IntN(4))
	began := c.instant()
	l, err := c.e.Claim(c.Context(), engine.Ref{Queue: queue, ID: id, IfState: state}, engine.Want{TTR: time.Hour, Remote: r.IntN(2) == 0})
	switch engine.Code(err) {
	case "not_found", "stale", "leased", "exists":
		return true
	}
	if c.over("claim", err) {
		return false
	}
	c.leased(l, c.book.now(), began)
	return c.settleMost([]engine.Lease{l}, r)
}

// look peeks at a queue and finds a message.
func (c *throng) look(queue string, id engine.ID) bool {
	if c.caps.Peek {
		first, err := c.e.(engine.Peeker).Peek(c.Context(), []string{queue})
		if c.over("peek", err) {
			return false
		}
		if i := first[0]; i.ID != 0 && (i.Queue != queue || i.State != engine.Ready || c.queueOf(i.Key) != queue) {
			c.Errorf("first in %s is %+v", queue, i)
		}
	}
	if c.caps.Find {
		began := c.instant()
		queues, err := c.e.(engine.Finder).Find(c.Context(), []engine.ID{id})
		if c.over("find", err) {
			return false
		}
		if queues[0] != "" && (id == 0 || queues[0] != queue) {
			c.Errorf("id %v is found in %s, not in %s", id, queues[0], queue)
		}
		c.found(id, queues[0] != "", began)
	}
	return true
}

// settleMost settles most leases.
func (c *throng) settleMost(leases []engine.Lease, r *rand.Rand) bool {
	for _, l := range leases {
		do := pick([]engine.Action{engine.Ack, engine.Ack, engine.Ack, engine.Retry, engine.Release, engine.Bury, engine.Extend, 0}, r.Uint32())
		if do == 0 {
			if r.IntN(2) == 0 && !c.replace(l, r) {
				return false
			}
			continue // else it lapses
		}
		if do == engine.Ack {
			c.ending(l.ID)
		}
		c.letGo(l.ID, do.String()) // the book does not follow extended leases
		settlement := engine.Settlement{Token: l.Token, Do: do, TTR: time.Minute}
		if c.caps.Reprioritize && r.IntN(2) == 0 {
			settlement.Priority = new(uint32(r.IntN(3)))
		}
		s, err := c.e.Settle(c.Context(), []engine.Settlement{settlement})
		if c.over("settle", err) || engine.Code(s[0].Err) == "unavailable" && c.over("settle", s[0].Err) {
			return false
		}
		if do == engine.Ack {
			c.settledEnd(l.ID, "acked", s[0].Err == nil)
		}
		if s[0].Err != nil && c.h.Clock.Now().Before(l.Deadline) {
			c.Errorf("%v of id %v before its deadline: %v", do, l.ID, s[0].Err)
		}
	}
	return true
}

// replace replaces a leased message, as its holder does.
func (c *throng) replace(l engine.Lease, r *rand.Rand) bool {
	msg := c.message(l.Key, engine.When{In: time.Duration(r.IntN(3)) * time.Minute}, engine.Replace, r)
	msg.Token = l.Token
	c.letGo(l.ID, "replaced by its holder")
	c.pushing(l.Key)
	res, err := c.e.Push(c.Context(), []engine.Message{msg})
	if c.over("replace", err) || engine.Code(res[0].Err) == "unavailable" && c.over("replace", res[0].Err) {
		return false
	}
	c.answered(l.Key, res[0])
	switch {
	case res[0].Err != nil && c.h.Clock.Now().Before(l.Deadline):
		c.Errorf("replace of id %v before its deadline: %v", l.ID, res[0].Err)
	case res[0].Err == nil && (res[0].ID != l.ID || res[0].Outcome != engine.Replaced):
		c.Errorf("replace of id %v: %+v", l.ID, res[0])
	}
	return true
}

// check compares the resting engine with the book.
func (c *throng) check() {
	ctx := c.Context()
	there := map[engine.ID]bool{}
	for _, first := range []string{"0", "1", "2"} {
		queue, held := c.queueOf(first), map[string]bool{}
		listed := map[engine.State]int64{}
		for state := engine.Scheduled; state <= engine.Dead; state++ {
			for q := (engine.ListQuery{Queue: queue, State: state, Limit: 50, Body: true}); ; {
				page, err := c.e.List(ctx, q)
				if err != nil {
					c.Fatalf("list: %v", err)
				}
				for _, i := range page.Messages {
					if there[i.ID] || state != engine.Dead && held[i.Key] {
						c.Errorf("id %v, key %s, stands twice", i.ID, i.Key)
					}
					there[i.ID], held[i.Key] = true, held[i.Key] || state != engine.Dead
					c.shown(i)
					listed[state]++
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
		}
		q, err := c.e.Queue(ctx, queue)
		if err != nil {
			c.Fatalf("count: %v", err)
		}
		for state, n := range map[engine.State]int64{engine.Scheduled: q.Scheduled, engine.Ready: q.Ready, engine.Leased: q.Leased, engine.Dead: q.Dead} {
			if n != listed[state] {
				c.Errorf("%d %v in %s counted, %d listed", n, state, queue, listed[state])
			}
		}
		f, err := c.e.Forecast(ctx, queue, time.Hour, 100*time.Hour)
		if err != nil {
			c.Fatalf("forecast: %v", err)
		}
		coming := int64(0)
		for _, b := range f.Buckets {
			coming += b.Count
		}
		if f.Overdue+coming != q.Scheduled+q.Ready {
			c.Errorf("forecast of %s: %d overdue and %d coming, of %d waiting", queue, f.Overdue, coming, q.Scheduled+q.Ready)
		}
	}
	c.compare(there)
}

// drain handles all messages. Each must come once.
func (c *throng) drain() {
	c.h.Clock.Advance(1000 * time.Hour)
	for _, first := range []string{"0", "1", "2"} {
		queue := c.queueOf(first)
		for {
			g, err := c.e.Lease(c.Context(), []engine.Want{{Queue: queue, Max: 100, TTR: time.Hour}})
			if err != nil || g.Queues[0].Err != nil {
				c.Fatalf("lease: %v, %+v", err, g)
			}
			var acks []engine.Settlement
			for _, l := range g.Queues[0].Messages {
				c.leased(l, g.Now, c.instant())
				c.ending(l.ID)
				acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
			}
			if len(acks) == 0 {
				break
			}
			s, err := c.e.Settle(c.Context(), acks)
			if err != nil {
				c.Fatalf("settle: %v", err)
			}
			for i, l := range g.Queues[0].Messages {
				if s[i].Err != nil {
					c.Errorf("ack of id %v: %v", l.ID, s[i].Err)
				}
				c.settledEnd(l.ID, "acked", true)
			}
		}
		if q, err := c.e.Queue(c.Context(), queue); err != nil || q.Scheduled+q.Ready+q.Leased != 0 {
			c.Errorf("%+v is left, %v", q, err)
		}
	}
	c.check()
}
