package enginetest

import (
	"slices"

	"github.com/tarryhq/tarry/engine"
)

// reopen closes the bed's engine and opens it again.
func (b *bed) reopen() {
	b.Helper()
	b.need("to reopen", b.h.Reopen != nil)
	b.e = b.h.Reopen(b.T, b.e)
	b.caps = b.e.Capabilities()
}

// leaseRemote leases one message under a lease that outlives the engine.
func (b *bed) leaseRemote() engine.Lease {
	b.Helper()
	b.need("RemoteLeases", b.caps.RemoteLeases)
	g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1, TTR: long, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		b.Fatalf("lease: %v, %+v", err, g)
	}
	return g.Queues[0].Messages[0]
}

var reopenTests = []test{
	{"messages survive in every state", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		optional[engine.Lister](b, "List", b.caps.List)
		b.push(b.msg("held", dueNow))
		held := b.leaseRemote()
		m := b.msg("buried", dueNow)
		m.Headers = []engine.Header{{Name: "a", Value: "b"}}
		b.push(m)
		b.bury(b.lease1(0).Token, "why")
		b.push(b.msg("ready", dueNow))
		m = b.msg("later", dueLater)
		m.ExpireAfter, m.Priority = long, new(uint32(4))
		m.Terms = b.able(m.Terms)
		b.push(m)
		before := map[engine.State][]engine.Info{}
		for state := engine.Scheduled; state <= engine.Dead; state++ {
			before[state] = b.listed(state)
		}
		b.reopen()
		for state, want := range before {
			got := b.listed(state)
			if len(got) != 1 || len(want) != 1 {
				b.Fatalf("%v: %+v, was %+v", state, got, want)
			}
			if problem := sameInfo(got[0], want[0]); problem != "" {
				b.Errorf("%v: %s", state, problem)
			}
		}
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 1, 1, 1, 1)
		}
		b.ack(held.Token)
		b.is(b.tryPush(b.msg("later", dueNow)).Err, engine.ErrExists)
		b.push(b.msg("held", dueLater))
		b.lease1(0)
		b.none("one was ready")
	}},
	{"ids are not used again", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		var seen []engine.ID
		for range 3 {
			for range 5 {
				id := b.push(b.msg("", dueNow)).ID
				if slices.Contains(seen, id) {
					b.Fatalf("id %v came twice", id)
				}
				seen = append(seen, id)
				b.ack(b.lease1(0).Token)
			}
			b.reopen()
		}
	}},
	{"a lease of the process itself is over, one given away is not", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.push(b.msg("own", dueNow))
		own := b.lease1(long)
		b.push(b.msg("remote", dueNow))
		remote := b.leaseRemote()
		b.reopen()
		if again := b.lease(10, 0).Messages; len(again) != 1 || again[0].ID != own.ID {
			b.Fatalf("leased %+v", again)
		}
		b.ack(remote.Token)
	}},
}
