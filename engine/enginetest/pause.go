package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

var pauseTests = []test{
	{"for good, until resumed", func(b *bed) {
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		b.push(b.msg("k", dueNow))
		b.is(p.Pause(b.Context(), b.queue, 0), nil)
		if g := b.lease(1, 0); len(g.Messages) > 0 || g.More || !g.NextDue.IsZero() {
			b.Fatalf("%+v", g)
		}
		b.pass(1)
		b.none("still paused")
		b.is(p.Resume(b.Context(), b.queue), nil)
		b.lease1(0)
	}},
	{"for a time", func(b *bed) {
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		b.push(b.msg("k", dueNow))
		b.is(p.Pause(b.Context(), b.queue, b.unit), nil)
		start := b.now()
		g, now := b.leaseAt(1, 0)
		if len(g.Messages) > 0 && now.Before(start.Add(b.unit/2)) {
			b.Fatalf("leased %+v", g)
		}
		if len(g.Messages) == 0 && (g.NextDue.IsZero() || g.NextDue.After(start.Add(b.unit+time.Millisecond))) {
			b.Fatalf("paused at %v for %v, NextDue %v", start, b.unit, g.NextDue)
		}
		if len(g.Messages) == 0 {
			b.pass(1)
			b.lease1(0)
		}
	}},
}

var purgeTests = []test{
	{"scheduled and ready go, leased and dead stay", func(b *bed) {
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		all := b.population()
		held, buried := len(all[engine.Leased]), len(all[engine.Dead])
		want := int64(len(all[engine.Scheduled]) + len(all[engine.Ready]))
		if n, err := p.Purge(b.Context(), b.queue, 0); err != nil || n != want {
			b.Fatalf("%v, %d purged, want %d", err, n, want)
		}
		b.none("purged")
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, held, buried)
		}
		if n, err := p.Purge(b.Context(), b.queue, engine.PurgeDead); err != nil || n != int64(buried) {
			b.Fatalf("%v, %d purged, want %d", err, n, buried)
		}
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, held, 0)
		}
	}},
	{"a large queue goes whole, and no other", func(b *bed) {
		p := optional[engine.Purger](b, "Purge", b.caps.Purge)
		other := b.msg("k", dueNow)
		other.Queue = b.queue + "x" // a name that begins with the purged one's
		b.push(other)
		const n = 2500
		for range n / 500 {
			msgs := make([]engine.Message, 500)
			for i := range msgs {
				msgs[i] = b.msg("", engine.When{In: time.Duration(i%3) * time.Hour})
			}
			if _, err := b.e.Push(b.Context(), msgs); err != nil {
				b.Fatal(err)
			}
		}
		if got, err := p.Purge(b.Context(), b.queue, 0); err != nil || got != n {
			b.Fatalf("%v, %d purged, want %d", err, got, n)
		}
		b.none("purged")
		b.queue = other.Queue
		b.lease1(0)
	}},
}
