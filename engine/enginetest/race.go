package enginetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// rounds is how often each race is run.
const rounds = 60

// race runs all functions at once and waits for them.
func race(all ...func()) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, f := range all {
		wg.Go(func() {
			<-start
			f()
		})
	}
	close(start)
	wg.Wait()
}

// take leases up to max messages, from any goroutine.
func (b *bed) take(max int) []engine.Lease {
	g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: max, TTR: long}})
	if err != nil || g.Queues[0].Err != nil {
		b.Errorf("lease: %v, %+v", err, g)
		return nil
	}
	return g.Queues[0].Messages
}

// pushed pushes one message from any goroutine.
func (b *bed) pushed(m engine.Message) engine.PushResult {
	r, err := b.e.Push(b.Context(), []engine.Message{m})
	if err != nil {
		b.Errorf("push: %v", err)
		return engine.PushResult{Err: err}
	}
	return r[0]
}

// settled settles one lease from any goroutine.
func (b *bed) settled(s engine.Settlement) error {
	r, err := b.e.Settle(b.Context(), []engine.Settlement{s})
	if err != nil {
		b.Errorf("settle: %v", err)
		return err
	}
	return r[0].Err
}

// cancelled cancels one message from any goroutine.
func (b *bed) cancelled(ref engine.Ref) error {
	errs, err := b.e.Cancel(b.Context(), []engine.Ref{ref})
	if err != nil {
		b.Errorf("cancel: %v", err)
		return err
	}
	return errs[0]
}

var raceTests = []test{
	{"cancel against lease: one of them wins", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		for range rounds {
			r := b.push(b.msg("k", dueNow))
			var got []engine.Lease
			var err error
			race(func() { got = b.take(1) }, func() { err = b.cancelled(b.id(r.ID)) })
			switch {
			case err == nil && len(got) == 0:
			case errors.Is(err, engine.ErrLeased) && len(got) == 1:
				b.ack(got[0].Token)
			default:
				b.Fatalf("cancel: %v; leased %d", err, len(got))
			}
			b.none("cancelled or handled")
		}
	}},
	{"replace against lease: one of them is told", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for range rounds {
			b.push(b.msg("k", dueNow))
			m := b.msg("k", dueNow)
			m.OnConflict, m.Body = engine.Replace, []byte("new")
			var got []engine.Lease
			var r engine.PushResult
			race(func() { got = b.take(1) }, func() { r = b.pushed(m) })
			if len(got) == 0 {
				got = b.leaseN(1, 0)
			}
			isNew := string(got[0].Body) == "new"
			if isNew != (r.Err == nil) || r.Err != nil && !errors.Is(r.Err, engine.ErrLeased) {
				b.Fatalf("replace: %+v; leased with body %q", r, got[0].Body)
			}
			b.ack(got[0].Token)
			b.none("one message for one key")
		}
	}},
	{"a lapsed lease: a new lease or the late ack, not both", func(b *bed) {
		b.laps(func(old engine.Lease) error {
			return b.settled(engine.Settlement{Token: old.Token, Do: engine.Ack})
		}, engine.ErrLeaseLost)
	}},
	{"a lapsed lease: a new lease or the cancel, not both", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		b.laps(func(old engine.Lease) error { return b.cancelled(b.id(old.ID)) }, engine.ErrLeased)
	}},
	{"wound forward while the engine looks ahead: each comes, once", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		b.windForward()
	}},
	{"two settlements of one lease: one succeeds", func(b *bed) {
		for range rounds {
			b.push(b.msg("", dueNow))
			l := b.lease1(0)
			var won atomic.Int32
			settle := func() {
				switch err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, engine.ErrLeaseLost):
					b.Errorf("ack: %v", err)
				}
			}
			race(settle, settle, settle)
			if won.Load() != 1 {
				b.Fatalf("%d of 3 succeeded", won.Load())
			}
		}
	}},
	{"pushes of one key: exactly one is created", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for i := range rounds {
			var created, exist atomic.Int32
			push := func() {
				switch r := b.pushed(b.msg(fmt.Sprint(i), dueNow)); {
				case r.Outcome == engine.Created && r.Err == nil:
					created.Add(1)
				case errors.Is(r.Err, engine.ErrExists):
					exist.Add(1)
				}
			}
			race(push, push, push, push)
			if created.Load() != 1 || exist.Load() != 3 {
				b.Fatalf("%d created, %d refused", created.Load(), exist.Load())
			}
		}
		b.leaseN(rounds, 0)
		b.none("one each")
	}},
	{"redrive against a push of its key: one is live", func(b *bed) {
		d := optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		b.need("Keys", b.caps.Keys)
		b.need("Cancel", b.caps.Cancel)
		for range rounds / 2 {
			id := b.deadOnes("k")[0]
			var r engine.PushResult
			var back engine.Redriven
			race(func() { r = b.pushed(b.msg("k", dueNow)) }, func() {
				var err error
				if back, err = d.Redrive(b.Context(), b.queue, []engine.ID{id}, 0); err != nil {
					b.Errorf("redrive: %v", err)
				}
			})
			if (back.Redriven == 1) == (r.Err == nil) {
				b.Fatalf("redrive: %+v; push: %+v", back, r)
			}
			got := b.lease(10, 0).Messages
			if len(got) != 1 || (got[0].ID == id) != (back.Redriven == 1) {
				b.Fatalf("redrive: %+v; push: %+v; leased %v", back, r, leaseIDs(got))
			}
			b.ack(got[0].Token)
			if back.Redriven == 0 {
				b.is(b.cancel(b.id(id)), nil)
			}
		}
	}},
	{"concurrent leases never share a message", func(b *bed) {
		const n = 400
		var msgs []engine.Message
		for range n {
			msgs = append(msgs, b.msg("", dueNow))
		}
		if _, err := b.e.Push(b.Context(), msgs); err != nil {
			b.Fatal(err)
		}
		var mu sync.Mutex
		seen := map[engine.ID]int{}
		left := func() int {
			mu.Lock()
			defer mu.Unlock()
			return n - len(seen)
		}
		worker := func() {
			for range 10 * n {
				if left() == 0 {
					return
				}
				for _, l := range b.take(7) {
					mu.Lock()
					seen[l.ID]++
					mu.Unlock()
					if err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err != nil {
						b.Errorf("ack: %v", err)
					}
				}
			}
		}
		race(worker, worker, worker, worker)
		for id, times := range seen {
			if times != 1 {
				b.Errorf("id %v was leased %d times", id, times)
			}
		}
		if len(seen) != n {
			b.leaseN(n-len(seen), 0)
		}
		b.none("all handled")
	}},
	{"pushes, leases, cancels and counts at once add up", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		b.need("Count", b.caps.Count)
		const n = 200
		var handled, dropped atomic.Int64
		drain := func() {
			for _, l := range b.take(5) {
				if err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err == nil {
					handled.Add(1)
				}
			}
		}
		producer := func() {
			for i := range n {
				r := b.pushed(b.msg("", dueNow))
				if i%3 == 0 && b.cancelled(b.id(r.ID)) == nil {
					dropped.Add(1)
				}
				if i%2 == 0 {
					drain()
				}
				if i%20 == 0 {
					if _, err := b.e.(engine.Counter).Queue(b.Context(), b.queue); err != nil {
						b.Errorf("queue: %v", err)
					}
				}
			}
		}
		race(producer, producer, producer)
		for range 3 * n {
			drain()
		}
		if got := handled.Load() + dropped.Load(); got != 3*n {
			b.Fatalf("%d handled and %d cancelled of %d", handled.Load(), dropped.Load(), 3*n)
		}
		b.counts(b.e.(engine.Counter), 0, 0, 0, 0)
	}},
	{"a purge beside pushes and leases removes nothing twice", func(b *bed) {
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		const n = 200
		var purged, handled atomic.Int64
		race(func() {
			for range n {
				b.pushed(b.msg("", dueNow))
			}
		}, func() {
			for range 20 {
				k, err := p.Purge(b.Context(), b.queue, 0)
				if err != nil {
					b.Errorf("purge: %v", err)
				}
				purged.Add(k)
			}
		}, func() {
			for range n {
				for _, l := range b.take(2) {
					if err := b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}); err != nil {
						b.Errorf("ack: %v", err)
					}
					handled.Add(1)
				}
			}
		})
		for _, l := range b.take(n) {
			b.ack(l.Token)
			handled.Add(1)
		}
		if got := purged.Load() + handled.Load(); got != n {
			b.Fatalf("%d purged and %d handled of %d", purged.Load(), handled.Load(), n)
		}
	}},
}

// laps lets leases lapse, and races new leases against calls of other with the old ones. For
// each message exactly one of the two must win, and the other must fail with refused.
func (b *bed) laps(other func(old engine.Lease) error, refused error) {
	b.Helper()
	for i := range rounds {
		b.push(b.msg(fmt.Sprint(i), dueNow))
	}
	old := b.lapsed(rounds)
	again := map[engine.ID]bool{}
	undone := map[engine.ID]error{}
	race(func() {
		for range rounds {
			for _, l := range b.take(2) {
				again[l.ID] = true
			}
		}
	}, func() {
		for id, l := range old {
			undone[id] = other(l)
		}
	})
	for id, err := range undone {
		switch {
		case err == nil && !again[id]:
		case errors.Is(err, refused) && again[id]:
		default:
			b.Errorf("id %v: %v; leased again: %v", id, err, again[id])
		}
	}
	b.none("each went somewhere")
}

// lapsed leases n messages and lets the leases lapse. On a slow machine, a message may lapse
// before all are leased, and is leased again. Its last lease counts.
func (b *bed) lapsed(n int) map[engine.ID]engine.Lease {
	b.Helper()
	last := make(map[engine.ID]engine.Lease, n)
	b.eventually(fmt.Sprintf("%d messages to lease", n), func() bool {
		for more := 1; more > 0 && len(last) < n; {
			some := b.lease(n, b.unit).Messages
			for _, l := range some {
				last[l.ID] = l
			}
			more = len(some)
		}
		return len(last) == n
	})
	b.pass(1)
	return last
}

// windForward reschedules messages that are due soon to now, from last to first, while others
// lease due messages. An engine that reads ahead finds them in both places.
func (b *bed) windForward() {
	const many = 500
	var msgs []engine.Message
	for i := range many {
		msgs = append(msgs, b.msg(fmt.Sprint(i), engine.When{In: 3*b.unit + time.Duration(i)*b.unit/many}))
	}
	results, err := b.e.Push(b.Context(), msgs)
	if err != nil {
		b.Fatal(err)
	}
	if b.h.Reopen != nil {
		b.e = b.h.Reopen(b.T, b.e)
	}
	came := make(map[engine.ID]int)
	var wound atomic.Bool
	race(func() {
		defer wound.Store(true)
		for i := many - 1; i >= 0; i-- {
			_, err := b.e.Reschedule(b.Context(), b.id(results[i].ID), dueNow)
			if err != nil && !errors.Is(err, engine.ErrLeased) {
				b.Errorf("reschedule: %v", err)
			}
		}
	}, func() {
		for last := false; !last; {
			last = wound.Load()
			for _, l := range b.take(20) {
				came[l.ID]++
			}
		}
	})
	if left := many - len(came); left > 0 {
		for _, l := range b.leaseN(left, 0) {
			came[l.ID]++
		}
	}
	for _, r := range results {
		if came[r.ID] != 1 {
			b.Fatalf("id %v came %d times", r.ID, came[r.ID])
		}
	}
}
