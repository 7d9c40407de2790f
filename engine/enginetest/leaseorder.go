package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var orderTests = []test{
	{"large messages come in more than one answer", func(b *bed) {
		const n, size = 12, 1 << 20
		b.need("MaxBody of 1 MiB", b.caps.MaxBody == 0 || b.caps.MaxBody >= size)
		for range n {
			m := b.msg("", dueNow)
			m.Body = make([]byte, size)
			b.push(m)
		}
		got := 0
		// A slow part of the store may be skipped, on any clock.
		b.soon("all to be leased", func() bool {
			g := b.lease(2*n, 0)
			got += len(g.Messages)
			bytes := len(g.Messages) * size
			if bytes > engine.AnswerBytes+size {
				b.Fatalf("%d bytes in one answer", bytes)
			}
			if bytes >= engine.AnswerBytes && got < n && !g.More {
				b.Fatalf("%d of %d leased, and no more", got, n)
			}
			return got == n
		})
	}},
	{"by priority, then due, then id", func(b *bed) {
		b.need("an order of more than one", b.caps.Window > 1)
		base := b.now().Add(-time.Hour).Truncate(time.Second)
		var want []engine.Info
		for _, p := range []uint32{9, 1, 4_294_967_295, 5, 1, 0, 9, 5} {
			for _, ago := range []int{3, 1, 2, 1} {
				m := b.msg("", engine.When{At: base.Add(-time.Duration(ago) * time.Minute)})
				m.Priority = &p
				m.Terms = b.able(m.Terms)
				r := b.push(m)
				want = append(want, engine.Info{ID: r.ID, Due: r.Due, Policy: m.Resolve(nil)})
			}
		}
		slices.SortFunc(want, byLease)
		var got []engine.ID
		for len(got) < len(want) {
			g := b.lease(5, 0)
			if len(g.Messages) == 0 {
				b.Fatalf("%d of %d came", len(got), len(want))
			}
			got = append(got, leaseIDs(g.Messages)...)
		}
		b.sameIDs("in order", got, infoIDs(want))
	}},
	{"Max is kept and More says that there are more", func(b *bed) {
		for i := range 5 {
			b.push(b.msg(fmt.Sprint(i), dueNow))
		}
		if g := b.lease(2, 0); len(g.Messages) != 2 || !g.More {
			b.Fatalf("%d messages, more %v", len(g.Messages), g.More)
		}
		if g := b.lease(10, 0); len(g.Messages) != 3 || g.More {
			b.Fatalf("%d messages, more %v", len(g.Messages), g.More)
		}
	}},
	{"each want is served apart", func(b *bed) {
		other := queueName()
		b.push(b.msg("a", dueNow))
		m := b.msg("b", dueNow)
		m.Queue = other
		b.push(m)
		g, err := b.e.Lease(b.Context(), []engine.Want{
			{Queue: other, Max: 5, TTR: time.Hour}, {Queue: queueName(), Max: 5}, {Queue: b.queue, Max: 5, TTR: 2 * time.Hour},
		})
		if err != nil || len(g.Queues) != 3 {
			b.Fatalf("%v, %+v", err, g)
		}
		if a, none, c := g.Queues[0].Messages, g.Queues[1].Messages, g.Queues[2].Messages; len(a) != 1 || len(none) != 0 || len(c) != 1 ||
			a[0].Queue != other || c[0].Queue != b.queue || !c[0].Deadline.After(a[0].Deadline) {
			b.Fatalf("%+v", g.Queues)
		}
	}},
	{"a leased message is not leased again", func(b *bed) {
		b.push(b.msg("k", dueNow))
		b.lease1(0)
		b.none("held")
	}},
	{"the lease lasts for Want.TTR, else the message's own", func(b *bed) {
		m := b.msg("k", dueNow)
		m.TTR = 3 * time.Hour
		b.push(m)
		for _, ttr := range []time.Duration{0, time.Hour} {
			before := b.now()
			l := b.lease1(ttr)
			want := max(ttr, m.TTR)
			if ttr > 0 {
				want = ttr
			}
			if l.Deadline.Before(before.Add(want).Truncate(time.Millisecond)) || l.Deadline.After(b.now().Add(want+time.Second)) {
				b.Fatalf("ttr %v: deadline %v, now %v", want, l.Deadline, before)
			}
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
		}
	}},
	{"tokens are unlike, also for one message", func(b *bed) {
		b.push(b.msg("k", dueNow))
		seen := map[string]bool{}
		for range 20 {
			l := b.lease1(0)
			if seen[l.Token] {
				b.Fatalf("token %q came twice", l.Token)
			}
			seen[l.Token] = true
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
		}
	}},
}

var dueTests = []test{
	{"nothing goes out before its due time", func(b *bed) {
		r := b.push(b.msg("k", b.in(2)))
		for {
			g, now := b.leaseAt(1, 0)
			if len(g.Messages) == 1 {
				if now.Before(r.Due) {
					b.Fatalf("leased at %v, due %v", now, r.Due)
				}
				return
			}
			if now.After(r.Due.Add(patience)) {
				b.Fatalf("due %v, still not leased at %v", r.Due, now)
			}
			if b.h.Clock != nil {
				b.h.Clock.Advance(min(b.unit/2, r.Due.Sub(now)))
			} else {
				b.eventually("some time to pass", func() bool { return b.now().Sub(now) > 5*time.Millisecond })
			}
		}
	}},
	{"now is not before the due of any message, however short a lease before it", func(b *bed) {
		const n = 60
		for i := range n {
			due := engine.When{In: time.Duration(i) * b.unit / 200}
			if i%2 == 0 {
				due = dueNow
			}
			m := b.msg("", due)
			m.MaxAttempts, m.Isolate = 1_000_000, new(false)
			m.Terms = b.able(m.Terms)
			b.push(m)
		}
		seen := map[engine.ID]bool{}
		wants := []engine.Want{{Queue: b.queue, Max: 1, TTR: time.Millisecond}, {Queue: b.queue, Max: 3, TTR: long}}
		b.eventually("all but one to be leased for long", func() bool {
			if b.h.Clock != nil {
				b.h.Clock.Advance(n * b.unit)
			}
			for range n {
				g, err := b.e.Lease(b.Context(), wants)
				if err != nil || len(g.Queues) != len(wants) {
					b.Fatalf("lease: %v, %+v", err, g)
				}
				for i, w := range wants {
					if problem := b.checkGrant(g.Now, w, g.Queues[i]); problem != "" || g.Queues[i].Err != nil {
						b.Fatalf("want %d: %s%v", i, problem, g.Queues[i].Err)
					}
				}
				for _, l := range g.Queues[1].Messages {
					seen[l.ID] = true
				}
				if b.h.Clock != nil {
					b.h.Clock.Advance(time.Millisecond)
				}
			}
			return len(seen) >= n-1 // the rest may come with the first want
		})
	}},
	{"NextDue counts the deadlines of leases", func(b *bed) {
		b.push(b.msg("far", dueLater))
		b.push(b.msg("k", dueNow))
		l := b.lease1(time.Hour)
		b.notLater(b.lease(1, 0), l.Deadline)
	}},
	{"a clock that goes back makes nothing early", func(b *bed) {
		b.need("an injected clock", b.h.Clock != nil)
		old := b.push(b.msg("old", engine.When{At: b.now().Add(-2 * long)}))
		b.now()
		b.h.Clock.Advance(-long)
		r := b.push(b.msg("new", engine.When{At: b.now().Add(time.Hour)}))
		if g := b.lease(10, time.Minute); len(g.Messages) != 1 || g.Messages[0].ID != old.ID {
			b.Fatalf("leased %+v, due then is %v alone", g.Messages, old.ID)
		}
		b.h.Clock.Set(r.Due)
		b.h.Clock.Advance(time.Second)
		found := false
		for _, l := range b.lease(10, 0).Messages {
			found = found || l.ID == r.ID
		}
		if !found {
			b.Fatal("what fell due on the clock set back was not leased")
		}
	}},
	{"a clock that jumps ahead makes due what is due", func(b *bed) {
		b.need("an injected clock", b.h.Clock != nil)
		for i := range 10 {
			b.push(b.msg(fmt.Sprint(i), engine.When{In: time.Duration(i+1) * 24 * time.Hour}))
		}
		b.h.Clock.Advance(5 * 24 * time.Hour)
		b.leaseN(5, 0)
		b.none("five more days")
		b.h.Clock.Advance(400 * 24 * time.Hour)
		b.leaseN(10, 0) // the five leases of two days have lapsed, too
	}},
	{"far and near due times do not disturb each other", func(b *bed) {
		b.need("any delay", b.caps.AnyDelay())
		for i := range 50 {
			b.push(b.msg("", engine.When{In: time.Duration(i+1) * 1000 * time.Hour}))
		}
		near := b.push(b.msg("near", b.in(1)))
		b.pass(1)
		if l := b.lease1(0); l.ID != near.ID {
			b.Fatalf("leased %+v", l)
		}
		b.none("far away")
	}},
}

// notLater fails the test unless a grant makes a waiter return by due.
func (b *bed) notLater(g engine.Granted, due time.Time) {
	b.Helper()
	if g.More || !g.NextDue.IsZero() && !g.NextDue.After(due) {
		return
	}
	b.Fatalf("NextDue is %v, later than %v", g.NextDue, due)
}
