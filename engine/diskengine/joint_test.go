package diskengine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// manyNames are more queues than one batch takes.
func manyNames() []string {
	names := make([]string, jointQueues+jointQueues/2)
	for i := range names {
		names[i] = fmt.Sprint("many-", i)
	}
	return names
}

func wantsOf(names []string, most int, remote bool) []engine.Want {
	wants := make([]engine.Want, len(names))
	for i, name := range names {
		wants[i] = engine.Want{Queue: name, Max: most, TTR: time.Minute, Remote: remote}
	}
	return wants
}

func acksOf(g engine.Grant) (acks []engine.Settlement) {
	for _, q := range g.Queues {
		for _, l := range q.Messages {
			acks = append(acks, engine.Settlement{Token: l.Token, Do: engine.Ack})
		}
	}
	return acks
}

// Calls over the same queues in all orders do not wait for one another for ever, and
// each message is leased and acked, or cancelled, once.
func TestCallsOfManyQueuesInAllOrders(t *testing.T) {
	e, _ := openMem(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a call that hangs is left
	defer cancel()
	names := manyNames()
	const rounds = 12
	var pushers, others sync.WaitGroup
	var mu sync.Mutex
	left := make(map[string]int) // by message: pushed, less acked or cancelled
	note := func(by int, messages ...string) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			left[m] += by
		}
	}
	shuffled := func() []string {
		some := slices.Clone(names)
		rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		return some
	}
	for p, atomic := range []bool{false, false, true, true} {
		pushers.Go(func() {
			for r := range rounds {
				var msgs []engine.Message
				var keys []string
				some := shuffled()
				if atomic {
					some = some[:10]
				}
				for _, name := range some {
					key := fmt.Sprintf("%d-%d", p, r)
					msgs, keys = append(msgs, engine.Message{Queue: name, Key: key}), append(keys, name+" "+key)
				}
				push := e.Push
				if atomic {
					push = e.PushAtomic
				}
				note(1, keys...) // before: others may be quick
				if _, err := push(ctx, msgs); err != nil {
					t.Error(err)
				}
				if r%3 > 0 {
					continue
				}
				refs := make([]engine.Ref, len(msgs))
				for i, m := range msgs {
					refs[i] = engine.Ref{Queue: m.Queue, Key: m.Key}
				}
				errs, err := e.Cancel(ctx, refs)
				if err != nil {
					t.Error(err)
				}
				for i, err := range errs {
					if err == nil {
						note(-1, keys[i])
					}
				}
			}
		})
	}
	over := make(chan struct{})
	settle := func(remote bool) (n int) {
		g, err := e.Lease(ctx, wantsOf(shuffled(), 3, remote))
		if err != nil {
			t.Error(err)
			return 0
		}
		for _, q := range g.Queues {
			for _, l := range q.Messages {
				note(-1, l.Queue+" "+l.Key)
			}
		}
		acks := acksOf(g)
		rand.Shuffle(len(acks), func(i, j int) { acks[i], acks[j] = acks[j], acks[i] })
		settled, err := e.Settle(ctx, acks)
		if err != nil {
			t.Error(err)
		}
		for _, s := range settled {
			if s.Err != nil {
				t.Error(s.Err)
			}
		}
		return len(acks)
	}
	for w := range 3 {
		others.Go(func() {
			for ended := false; ; {
				if n := settle(w > 0); t.Failed() || ended && n == 0 {
					return
				}
				select {
				case <-over:
					ended = true
				default:
				}
			}
		})
	}
	pushers.Wait()
	close(over)
	others.Wait()
	for m, n := range left {
		if n != 0 {
			t.Errorf("%s: %d left", m, n)
		}
	}
	for _, name := range names {
		if q := e.queue(name); q.counts != (counts{}) || q.near.len() != 0 || len(q.leases.byID) != 0 {
			t.Errorf("%s holds %+v, %d in memory, %d leases", name, q.counts, q.near.len(), len(q.leases.byID))
		}
	}
}

// A queue whose lock is not to be had holds up the call that needs it, and no other
// queue of that call.
func TestQueueThatIsSlowHoldsUpNoOtherOfItsCall(t *testing.T) {
	e, _ := openMem(t)
	names := []string{"a", "b", "slow", "c", "d"}
	var msgs []engine.Message
	for _, name := range names {
		msgs = append(msgs, engine.Message{Queue: name}, engine.Message{Queue: name})
	}
	pushAll(t, e, msgs)
	q := e.queue("slow")
	q.mu.Lock()
	all := make(chan engine.Grant, 1)
	go func() {
		g, err := e.Lease(t.Context(), wantsOf(names, 1, true))
		if err != nil {
			t.Error(err)
		}
		all <- g
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	// The call has been over each of the others once one of their messages is leased.
	for _, name := range []string{"a", "b", "c", "d"} {
		for info := (engine.QueueInfo{}); info.Leased == 0; {
			var err error
			if info, err = e.Queue(ctx, name); err != nil {
				q.mu.Unlock()
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	q.mu.Unlock()
	for i, g := range (<-all).Queues {
		if g.Err != nil || len(g.Messages) != 1 {
			t.Errorf("%s: %v, %d messages", names[i], g.Err, len(g.Messages))
		}
	}
}

// TestReadErrorWhileLeasingOfMany lets one read fail of calls that lease from several
// queues: no want but one may fail, which leases nothing, and nothing is lost.
func TestReadErrorWhileLeasingOfMany(t *testing.T) {
	names := []string{"q", "r", "s", "t"}
	const each = 2
	failures := 0
	newScene(t, func(d *coldDisk) {
		var msgs []engine.Message
		for i, name := range slices.Repeat(names, each) {
			m := waiting(fmt.Sprint(i), time.Second)
			m.Queue, m.Body = name, make([]byte, 4*inlineBody)
			msgs = append(msgs, m)
		}
		pushAll(d.t, d.Engine, msgs)
	}).eachRead(t,
		func(d *coldDisk) error {
			leased, failed := 0, 0
			for range 3 { // when nothing is due, with what is due in memory, and again
				g, err := d.Lease(d.t.Context(), wantsOf(names, each, true))
				if err != nil {
					return err
				}
				for i, g := range g.Queues {
					if leased += len(g.Messages); g.Err != nil {
						failed++
					}
					if n := len(g.Messages); n != 0 && n != each || n > 0 && g.Err != nil {
						d.t.Errorf("%s: %d messages, %v", names[i], n, g.Err)
					}
				}
				d.clock.Advance(time.Second)
			}
			failures += failed
			if failed > 1 || leased != each*len(names) {
				d.t.Errorf("%d wants failed; %d messages leased", failed, leased)
			}
			return nil
		},
		func(t *testing.T, d *coldDisk, _ bool) {
			for _, name := range names {
				sound(t, d.queue(name))
			}
		})
	if failures == 0 {
		t.Error("no want failed")
	}
}
