package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// crowded runs f from eight goroutines at once.
func crowded(f func(i int)) {
	all := make([]func(), 8)
	for i := range all {
		all[i] = func() { f(i) }
	}
	race(all...)
}

var raceLimitTests = []test{
	{"in_flight is not exceeded by many who lease and claim", func(b *bed) {
		b.needWhole()
		const most, n = 5, 160
		b.configure(engine.Settings{InFlight: most})
		all := b.pushAll(n)
		var held, handled atomic.Int64
		claimer, _ := b.e.(engine.Claimer)
		crowded(func(i int) {
			for try := 0; handled.Load() < n && try < 200*n && !b.Failed(); try++ {
				var got []engine.Lease
				if i == 0 && b.caps.Claim {
					l, err := claimer.Claim(b.Context(), b.id(all[try%n]), engine.Want{TTR: long})
					if err == nil {
						got = []engine.Lease{l}
					} else if c := engine.Code(err); c != "limit" && c != "leased" && c != "not_found" {
						b.Errorf("claim: %v", err)
					}
				} else {
					got = b.take(3)
				}
				if now := held.Add(int64(len(got))); now > most {
					b.Errorf("%d are leased at once", now)
				}
				for _, l := range got {
					held.Add(-1)
					if err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err != nil {
						b.Errorf("ack: %v", err)
					}
					handled.Add(1)
				}
			}
		})
		if handled.Load() != n {
			b.Fatalf("%d of %d were handled", handled.Load(), n)
		}
		b.none("all were handled")
	}},
	{"rate lets no more pass whoever asks", func(b *bed) {
		b.needWhole()
		const most = 10
		b.configure(engine.Settings{Rate: engine.MinRate, Burst: most})
		b.pushAll(80)
		var got atomic.Int64
		crowded(func(int) {
			for range 5 {
				got.Add(int64(len(b.take(2))))
			}
		})
		if got.Load() != most {
			b.Fatalf("%d were leased, %d may", got.Load(), most)
		}
	}},
	{"max_pending is not exceeded by many who push", func(b *bed) {
		b.needWhole()
		const most = 30
		b.configure(engine.Settings{MaxPending: most})
		var kept, refused atomic.Int64
		crowded(func(int) {
			for range 20 {
				switch r := b.pushed(b.msg("", dueNow)); {
				case r.Err == nil:
					kept.Add(1)
				case errors.Is(r.Err, engine.ErrLimit):
					refused.Add(1)
				default:
					b.Errorf("push: %v", r.Err)
				}
			}
		})
		if kept.Load() != most || refused.Load() != 8*20-most {
			b.Fatalf("%d were kept, %d refused; %d may be there", kept.Load(), refused.Load(), most)
		}
		b.leaseN(most, 0)
	}},
	{"dead_max is kept by many who bury", func(b *bed) {
		b.needWhole()
		b.need("Count", b.caps.Count)
		const most, n = 7, 120
		b.configure(engine.Settings{DeadMax: most})
		b.pushAll(n)
		leases := b.leaseN(n, long)
		var next atomic.Int64
		crowded(func(int) {
			for i := next.Add(1) - 1; i < n; i = next.Add(1) - 1 {
				if err := b.settled(engine.Settlement{Token: leases[i].Token, Do: engine.Bury}); err != nil {
					b.Errorf("bury: %v", err)
				}
			}
		})
		b.none("all are dead")
		b.counts(b.e.(engine.Counter), 0, 0, 0, most)
	}},
	{"of writes on condition of one revision one succeeds", func(b *bed) {
		c := optional[engine.Configurer](b, "Settings", b.caps.Settings)
		_, revision := b.settings()
		for range rounds / 4 {
			var mu sync.Mutex
			won := map[string]engine.Settings{}
			crowded(func(i int) {
				s := engine.Settings{DeadMax: int64(i + 1)}
				switch next, err := c.Configure(b.Context(), b.queue, s, revision); {
				case err == nil:
					mu.Lock()
					defer mu.Unlock()
					won[next] = s
				case !errors.Is(err, engine.ErrStale):
					b.Errorf("configure: %v", err)
				}
			})
			if len(won) != 1 {
				b.Fatalf("%d of 8 succeeded", len(won))
			}
			for next, s := range won {
				b.configured(s, next)
				revision = next
			}
		}
	}},
	{"pushes that are repeated beside acks and cancels run each key once", func(b *bed) {
		b.needRemember()
		b.need("Cancel", b.caps.Cancel)
		const keys = 60
		var mu sync.Mutex
		ends := map[string]int{}
		created := map[string]int{}
		note := func(in map[string]int, key string) {
			mu.Lock()
			defer mu.Unlock()
			in[key]++
		}
		handle := func(most int) {
			for _, l := range b.take(most) {
				switch err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err {
				case nil:
					note(ends, l.Key)
				default:
					b.Errorf("ack: %v", err)
				}
			}
		}
		crowded(func(i int) {
			for n := range 3 * keys {
				key := fmt.Sprint(n % keys)
				switch {
				case i < 4:
					m := b.fleeting(key, dueNow, long)
					m.OnConflict = []engine.Conflict{engine.Reject, engine.Keep}[i%2]
					r := b.pushed(m)
					if r.Err != nil && !errors.Is(r.Err, engine.ErrExists) {
						b.Errorf("push: %v", r.Err)
					}
					if r.Outcome == engine.Created {
						note(created, key)
					}
				case i < 7:
					handle(2)
				case n%3 == 0:
					if b.cancelled(b.key(key)) == nil {
						note(ends, key)
					}
				}
			}
		})
		for i := 0; len(ends) < keys && i < keys; i++ {
			handle(keys)
		}
		for n := range keys {
			if key := fmt.Sprint(n); ends[key] != 1 || created[key] != 1 {
				b.Errorf("key %s was made %d times and ended %d times", key, created[key], ends[key])
			}
		}
	}},
	{"of those who begin anew one makes the message", func(b *bed) {
		b.needRemember()
		for i := range rounds / 4 {
			key := fmt.Sprint(i)
			b.handled(key, long)
			outcomes := make([]engine.Outcome, 8)
			crowded(func(i int) {
				m := b.msg(key, dueLater)
				m.OnConflict = []engine.Conflict{engine.Replace, engine.Rearm, engine.KeepDue}[i%3]
				r := b.pushed(m)
				if r.Err != nil {
					b.Errorf("push: %v", r.Err)
				}
				outcomes[i] = r.Outcome
			})
			if made := len(slices.DeleteFunc(outcomes, func(o engine.Outcome) bool { return o != engine.Created })); made != 1 {
				b.Fatalf("%d were made", made)
			}
		}
	}},
	{"an ack beside the push that it frees the key for: the memory is met or made anew", func(b *bed) {
		b.needRemember()
		for i := range rounds {
			key := fmt.Sprint(i)
			first := b.push(b.fleeting(key, dueNow, long))
			l := b.lease1(long)
			m := b.msg(key, dueNow)
			m.OnConflict = engine.Replace
			var r engine.PushResult
			race(func() {
				if err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err != nil {
					b.Errorf("ack: %v", err)
				}
			}, func() { r = b.pushed(m) })
			switch {
			case errors.Is(r.Err, engine.ErrLeased):
				b.finished(first, key, engine.Acked)
			case r.Outcome == engine.Created && r.ID != first.ID:
				b.ack(b.leaseOf(r).Token)
				b.absent(b.key(key))
			default:
				b.Fatalf("%+v", r)
			}
		}
	}},
}
