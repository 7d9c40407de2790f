package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// cutters is how many goroutines interrupt calls at a time.
const cutters = 4

// cut makes a call whose context ends at a random moment before, during or after it. The
// moment is later with each try.
func (b *bed) cut(try int, call func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var done sync.WaitGroup
	done.Go(func() {
		for range rand.IntN(40 << min(try, 12)) {
			runtime.Gosched()
		}
		cancel()
	})
	call(ctx)
	done.Wait()
}

// cutAll runs f for each number below n from several goroutines.
func cutAll(n int, f func(i int)) {
	var next atomic.Int64
	all := make([]func(), cutters)
	for c := range all {
		all[c] = func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		}
	}
	race(all...)
}

// pushAll pushes n messages that are due now and returns their ids.
func (b *bed) pushAll(n int) []engine.ID {
	b.Helper()
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = b.msg(fmt.Sprint(i), dueNow)
	}
	return ids(b.pushEach(msgs), func(r engine.PushResult) engine.ID { return r.ID })
}

var cutTests = []test{
	{"a push that was cut is repeated by its key and makes one message", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		const n = 150
		cutAll(n, func(i int) {
			m := b.msg(fmt.Sprint(i), dueNow)
			m.OnConflict = engine.Keep
			for try, answered := 0, false; !answered && !b.Failed(); try++ {
				b.cut(try, func(ctx context.Context) {
					r, err := b.e.Push(ctx, []engine.Message{m})
					if answered = err == nil && r[0].Err == nil; answered {
						return
					}
					if err == nil && !errors.Is(r[0].Err, context.Canceled) || err != nil && !errors.Is(err, context.Canceled) {
						b.Errorf("push: %v, %+v", err, r)
					}
				})
			}
			if r := b.pushed(m); r.Outcome != engine.Kept {
				b.Errorf("pushed once more: %+v", r)
			}
		})
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, n, 0, 0)
		}
		keys := map[string]bool{}
		for _, l := range b.leaseN(n, 0) {
			if keys[l.Key] {
				b.Errorf("key %s twice", l.Key)
			}
			keys[l.Key] = true
		}
		b.none("one for each key")
	}},
	{"a lease that was cut loses nothing", func(b *bed) {
		const n = 120
		msgs := make([]engine.Message, n)
		for i := range msgs {
			msgs[i] = b.msg("", dueNow)
			msgs[i].MaxAttempts = 1_000_000 // the messages due first lapse again and again
		}
		b.pushEach(msgs)
		var acked sync.Map
		cutAll(2*n, func(i int) {
			var got []engine.Lease
			b.cut(i%8, func(ctx context.Context) {
				g, err := b.e.Lease(ctx, []engine.Want{{Queue: b.queue, Max: 3, TTR: b.unit}})
				if err == nil {
					got = g.Queues[0].Messages
				}
			})
			for _, l := range got {
				switch err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); {
				case err == nil:
					if _, twice := acked.LoadOrStore(l.ID, true); twice {
						b.Errorf("id %v was handled twice", l.ID)
					}
				case b.h.Clock != nil || !errors.Is(err, engine.ErrLeaseLost): // a real clock may have gone on
					b.Errorf("ack: %v", err)
				}
			}
		})
		b.soon("what was cut to be leased again", func() bool {
			b.pass(2) // each time: a cut call may take effect late
			for _, l := range b.lease(n, long).Messages {
				if _, twice := acked.LoadOrStore(l.ID, true); twice {
					b.Errorf("id %v was acked and is back", l.ID)
				}
				b.ack(l.Token)
			}
			left := n
			acked.Range(func(any, any) bool { left--; return true })
			return left == 0
		})
		b.none("all were handled")
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, 0, 0)
		}
	}},
	{"a settlement that was cut happened whole or not at all", func(b *bed) {
		const n = 120
		b.pushAll(n)
		leases := b.leaseN(n, long)
		cutAll(n, func(i int) {
			for try, answered := 0, false; !answered && !b.Failed(); try++ {
				b.cut(try, func(ctx context.Context) {
					s, err := b.e.Settle(ctx, []engine.Settlement{{Token: leases[i].Token, Do: engine.Retry, When: &dueNow, Reason: "cut"}})
					answered = err == nil && (s[0].Err == nil || errors.Is(s[0].Err, engine.ErrLeaseLost))
				})
			}
		})
		var again []engine.Lease
		b.soon("what was settled to be leased again", func() bool { // a cut call may still hold its message
			again = append(again, b.lease(n-len(again), long).Messages...)
			return len(again) == n
		})
		for _, l := range again {
			if l.Attempt != 2 || l.LastError != "cut" {
				b.Errorf("settled more or less than once: %+v", l.Info)
			}
		}
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, n, 0)
		}
	}},
	{"a cancel that was cut happened whole or not at all", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		const n = 120
		all := b.pushAll(n)
		cutAll(n, func(i int) {
			for try, answered := 0, false; !answered && !b.Failed(); try++ {
				b.cut(try, func(ctx context.Context) {
					errs, err := b.e.Cancel(ctx, []engine.Ref{b.id(all[i])})
					answered = err == nil && (errs[0] == nil || errors.Is(errs[0], engine.ErrNotFound))
				})
			}
		})
		b.none("all were cancelled")
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, 0, 0)
		}
		if b.caps.Keys {
			b.pushAll(n) // their keys are free
		}
	}},
	{"counters and lists agree after all kinds of calls were cut", func(b *bed) {
		optional[engine.Lister](b, "List", b.caps.List)
		counter := optional[engine.Counter](b, "Count", b.caps.Count)
		b.need("Keys", b.caps.Keys)
		b.need("Reschedule", b.caps.Reschedule)
		var mu sync.Mutex
		var tokens []string
		cutAll(600, func(i int) {
			key := fmt.Sprint(rand.IntN(20))
			b.cut(i%8, func(ctx context.Context) {
				switch rand.IntN(5) {
				case 0, 1:
					m := b.msg(key, []engine.When{dueNow, dueLater}[rand.IntN(2)])
					m.OnConflict = engine.Conflict(rand.IntN(5))
					_, _ = b.e.Push(ctx, []engine.Message{m})
				case 2:
					_, _ = b.e.Cancel(ctx, []engine.Ref{b.key(key)})
				case 3:
					_, _ = b.e.Reschedule(ctx, b.key(key), dueNow)
				case 4:
					g, err := b.e.Lease(ctx, []engine.Want{{Queue: b.queue, Max: 2, TTR: long}})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						for _, l := range g.Queues[0].Messages {
							tokens = append(tokens, l.Token)
						}
					}
					if len(tokens) > 0 {
						do := engine.Ack + engine.Action(rand.IntN(5))
						_, _ = b.e.Settle(ctx, []engine.Settlement{{Token: tokens[0], Do: do, When: &dueNow}})
						tokens = tokens[1:]
					}
				}
			})
		})
		b.soon("counters and lists to agree", func() bool {
			q, err := counter.Queue(b.Context(), b.queue)
			if err != nil {
				b.Fatal(err)
			}
			listed := map[engine.State]int64{}
			held := map[string]bool{}
			for state := engine.Scheduled; state <= engine.Dead; state++ {
				for _, i := range b.listed(state) {
					listed[state]++
					if state != engine.Dead && held[i.Key] {
						b.Errorf("key %s is held twice", i.Key)
					}
					held[i.Key] = true
				}
			}
			return q.Scheduled == listed[engine.Scheduled] && q.Ready == listed[engine.Ready] &&
				q.Leased == listed[engine.Leased] && q.Dead == listed[engine.Dead]
		})
	}},
}
