package enginetest

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// heldBack fails the test unless a grant has n messages and reports that more are held back.
func (b *bed) heldBack(g engine.Granted, n int) {
	b.Helper()
	if len(g.Messages) != n || g.More || !g.Held {
		b.Fatalf("%d messages, more %v, held %v; want %d, held", len(g.Messages), g.More, g.Held, n)
	}
}

var maxPendingTests = []test{
	{"a push that would make one more is refused", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{MaxPending: 3})
		r, err := b.e.Push(b.Context(), []engine.Message{b.msg("a", dueNow), b.msg("b", dueLater), b.msg("c", dueNow), b.msg("d", dueNow)})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range r[:3] {
			b.is(r.Err, nil)
		}
		b.hints(engine.ErrLimit, r[3].Err, hintOf(engine.RefusePending(engine.Ref{}, 3)))
		l := b.leaseN(2, 0)
		b.is(b.tryPush(b.msg("", dueNow)).Err, engine.ErrLimit) // leased ones count
		b.ack(l[0].Token)
		b.push(b.msg("", dueLater))
		b.is(b.tryPush(b.msg("", dueNow)).Err, engine.ErrLimit)
		b.bury(l[1].Token, "x")
		b.push(b.msg("", dueLater))
		b.is(b.tryPush(b.msg("", dueNow)).Err, engine.ErrLimit)
		if b.caps.Purge {
			_, err := b.e.(engine.Purger).Purge(b.Context(), b.queue, 0)
			b.is(err, nil)
			b.push(b.msg("", dueLater))
		}
		b.queue = queueName()
		b.push(b.msg("", dueNow))
	}},
	{"a refused push forgets nothing", func(b *bed) {
		b.needWhole()
		b.needRemember()
		r := b.handled("k", long)
		b.push(b.msg("", dueLater))
		b.configure(engine.Settings{MaxPending: 1})
		m := b.msg("k", dueLater)
		m.OnConflict = engine.Replace
		b.is(b.tryPush(m).Err, engine.ErrLimit)
		b.finished(r, "k", engine.Acked)
		b.is(b.tryPush(b.msg("k", dueLater)).Err, engine.ErrExists)
	}},
	{"an atomic push of which one expires at once is kept whole or not at all", func(b *bed) {
		b.needWhole()
		b.need("Keys", b.caps.Keys)
		b.need("Expiry", b.caps.Expiry)
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		b.configure(engine.Settings{MaxPending: 1})
		past := b.msg("a", engine.When{At: b.now().Add(-time.Hour)})
		past.ExpireAfter = time.Millisecond
		r, err := p.PushAtomic(b.Context(), []engine.Message{past, b.msg("b", dueLater)})
		if err == nil {
			b.is(r[0].Err, nil)
			b.is(r[1].Err, nil)
			return
		}
		b.is(err, engine.ErrLimit)
		_, err = b.e.Get(b.Context(), b.key("b"))
		b.is(err, engine.ErrNotFound)
		b.none("nothing was kept")
	}},
	{"shares of it take about as many", func(b *bed) {
		b.need("Settings", b.caps.Settings)
		b.configure(engine.Settings{MaxPending: 100})
		refused := 0
		for range 3 {
			msgs := make([]engine.Message, 100)
			for i := range msgs {
				msgs[i] = b.msg("", dueLater)
			}
			results, err := b.e.Push(b.Context(), msgs)
			if err != nil {
				b.Fatal(err)
			}
			for _, r := range results {
				if errors.Is(r.Err, engine.ErrLimit) {
					refused++
				}
			}
		}
		if refused < 100 || refused > 250 {
			b.Fatalf("%d of 300 refused", refused)
		}
	}},
}

var inFlightTests = []test{
	{"no more are leased at once, and a settlement frees a place", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{InFlight: 2})
		b.pushAll(6)
		g := b.lease(5, 2*time.Hour)
		b.heldBack(g, 2)
		b.notLater(g, g.Messages[0].Deadline)
		next := b.lease(1, 0)
		b.heldBack(next, 0)
		b.notLater(next, g.Messages[0].Deadline)
		b.ack(g.Messages[0].Token)
		third := b.lease(1, 0)
		b.heldBack(third, 1)
		b.settle(engine.Settlement{Token: third.Messages[0].Token, Do: engine.Snooze, When: &dueLater})
		b.bury(g.Messages[1].Token, "x")
		last := b.lease(1, 0)
		if len(last.Messages) != 1 || !last.More || last.Held {
			b.Fatalf("%+v", last)
		}
		b.heldBack(b.lease(5, 0), 1)
	}},
	{"a claim is held back, too", func(b *bed) {
		b.needWhole()
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		b.configure(engine.Settings{InFlight: 1})
		all := b.pushAll(2)
		l, err := c.Claim(b.Context(), b.id(all[0]), engine.Want{})
		b.is(err, nil)
		_, err = c.Claim(b.Context(), b.id(all[1]), engine.Want{})
		b.hints(engine.ErrLimit, err, hintOf(engine.RefuseClaim(engine.Ref{}, time.Time{})))
		if until := untilOf(err); !until.IsZero() {
			b.Errorf("nobody knows when a place is freed, and %v is told", until)
		}
		_, err = c.Claim(b.Context(), b.id(all[0]), engine.Want{})
		b.is(err, engine.ErrLeased)
		b.heldBack(b.lease(1, 0), 0)
		b.ack(l.Token)
		_, err = c.Claim(b.Context(), b.id(all[1]), engine.Want{})
		b.is(err, nil)
	}},
	{"a settlement of any kind that frees a place is hinted", func(b *bed) {
		b.needWhole()
		for do := engine.Ack; do <= engine.Bury; do++ {
			b.queue = queueName()
			b.configure(engine.Settings{InFlight: 1})
			b.pushAll(2)
			l := b.lease1(long)
			b.hinted(do.String(), func() { b.settle(engine.Settlement{Token: l.Token, Do: do, When: &dueLater}) })
		}
	}},
	{"shares of it let about as many go", func(b *bed) {
		b.need("Settings", b.caps.Settings)
		b.configure(engine.Settings{InFlight: 40})
		b.pushAll(400)
		n := 0
		for {
			g := b.lease(100, long)
			if n += len(g.Messages); len(g.Messages) == 0 {
				if !g.Held || g.More {
					b.Fatalf("held %v, more %v", g.Held, g.More)
				}
				break
			}
		}
		if n < 40 || n > 80 {
			b.Fatalf("%d leased at once of an in_flight of 40", n)
		}
	}},
}

// perUnit is a rate of one lease in each of the bed's units.
func (b *bed) perUnit() float64 { return 1 / b.unit.Seconds() }

var rateTests = []test{
	{"a burst, then one by one", func(b *bed) {
		b.needWhole()
		b.configure(engine.Settings{Rate: b.perUnit(), Burst: 3})
		b.pushAll(16) // more than can go, however slow the machine
		g, now := b.leaseAt(9, 0)
		b.heldBack(g, 3)
		if g.NextDue.IsZero() || g.NextDue.After(now.Add(b.unit+time.Millisecond)) {
			b.Fatalf("one each %v, NextDue is %v after now", b.unit, g.NextDue.Sub(now))
		}
		for range 3 {
			b.pass(1)
			b.paced(1, 3)
		}
		b.pass(5)
		before := b.now()
		b.paced(3, 3)                                            // no more than a burst is gathered
		if g, now := b.leaseAt(1, 0); now.Sub(before) < b.unit { // on a slow machine, the next lease is allowed already
			b.heldBack(g, 0)
		}
	}},
	{"it is the rate that it says", func(b *bed) {
		b.needWhole()
		b.needClock()
		b.configure(engine.Settings{Rate: 20})
		b.pushAll(60)
		n, start := 0, b.h.Clock.Now()
		for n < 60 {
			g, now := b.leaseAt(10, 0)
			n += len(g.Messages)
			if most := 2 + int(now.Sub(start)/(50*time.Millisecond)); n > most {
				b.Fatalf("%d leased after %v", n, now.Sub(start))
			}
			if n < 60 {
				if !g.Held || g.NextDue.IsZero() {
					b.Fatalf("%+v", g)
				}
				b.h.Clock.Set(g.NextDue)
			}
		}
		if took := b.h.Clock.Now().Sub(start); took > 3*time.Second {
			b.Fatalf("60 at 20 a second took %v", took)
		}
	}},
	{"it goes on when the clock was set back", func(b *bed) {
		b.needWhole()
		b.needClock()
		b.configure(engine.Settings{Rate: b.perUnit(), Burst: 2})
		for range 6 {
			m := b.msg("", dueNow)
			m.Due = engine.When{At: b.now().Add(-2 * time.Hour)}
			b.push(m)
		}
		b.heldBack(b.lease(6, long), 2)
		b.h.Clock.Advance(-time.Hour)
		g, now := b.leaseAt(6, long)
		b.heldBack(g, 0)
		if g.NextDue.IsZero() || g.NextDue.After(now.Add(b.unit+time.Millisecond)) {
			b.Fatalf("one each %v, NextDue is %v after now", b.unit, g.NextDue.Sub(now))
		}
		b.pass(1)
		b.paced(1, 2)
		b.pass(1)
		b.paced(1, 2)
		b.h.Clock.Advance(time.Hour) // as much as a burst has gathered
		b.paced(2, 2)
	}},
	{"a claim is held back, too", func(b *bed) {
		b.needWhole()
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		b.configure(engine.Settings{Rate: engine.MinRate})
		all := b.pushAll(3)
		_, err := c.Claim(b.Context(), b.id(all[0]), engine.Want{})
		b.is(err, nil)
		_, err = c.Claim(b.Context(), b.id(all[1]), engine.Want{})
		b.is(err, engine.ErrLimit)
		if next := b.now().Add(24 * time.Hour); untilOf(err).After(next.Add(time.Millisecond)) || untilOf(err).Before(next.Add(-patience)) {
			b.Errorf("it may be claimed at %v; told is %v", next, untilOf(err))
		}
		if b.h.Clock != nil {
			b.hints(engine.ErrLimit, err, hintOf(engine.RefuseClaim(engine.Ref{}, b.now().Add(24*time.Hour))))
		}
		_, err = c.Claim(b.Context(), b.id(all[0]), engine.Want{})
		b.is(err, engine.ErrLeased)
		b.heldBack(b.lease(1, 0), 0)
	}},
	{"two wants of one queue share it", func(b *bed) {
		b.needWhole()
		for _, s := range []engine.Settings{{Rate: engine.MinRate, Burst: 3}, {InFlight: 3}} {
			b.queue = queueName()
			b.configure(s)
			b.pushAll(6)
			g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 2}, {Queue: b.queue, Max: 2}})
			if err != nil {
				b.Fatal(err)
			}
			if n := len(g.Queues[0].Messages) + len(g.Queues[1].Messages); n != 3 {
				b.Fatalf("%d leased, 3 allowed by %+v", n, s)
			}
		}
	}},
	{"shares of it let about as many go", func(b *bed) {
		b.need("Settings", b.caps.Settings)
		b.configure(engine.Settings{Rate: engine.MinRate, Burst: 40})
		b.pushAll(300)
		n := 0
		for {
			g := b.lease(100, long)
			if n += len(g.Messages); len(g.Messages) == 0 {
				if !g.Held || g.More || g.NextDue.IsZero() {
					b.Fatalf("held %v, more %v, next %v", g.Held, g.More, g.NextDue)
				}
				break
			}
		}
		if n < 40 || n > 80 {
			b.Fatalf("%d leased of a burst of 40", n)
		}
	}},
}

// paced leases what a rate allows: exactly n on an injected clock, else n or a few more.
func (b *bed) paced(n, burst int) []engine.Lease {
	b.Helper()
	g := b.lease(burst+1, 0)
	if got := len(g.Messages); got < n || got > burst || b.h.Clock != nil && got != n {
		b.Fatalf("%d leased, want %d", got, n)
	}
	return g.Messages
}
