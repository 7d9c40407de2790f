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
	g, err := b.e.Lease(b.Context(), []engine.Want{{Queue: b.queue, Max: 1, TTR: long, Remote: true}})
	if err != nil || len(g.Queues[0].Messages) != 1 {
		b.Fatalf("lease: %v, %+v", err, g)
	}
	return g.Queues[0].Messages[0]
}

var reopenTests = []test{
	{"messages survive in every state", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		lister := optional[engine.Lister](b, "List", b.caps.List)
		b.push(b.msg("held", dueNow))
		held := b.leaseRemote()
		m := b.msg("buried", dueNow)
		m.Headers = []engine.Header{{Name: "a", Value: "b"}}
		b.push(m)
		b.bury(b.lease1(0).Token, "why")
		b.push(b.msg("ready", dueNow))
		m = b.msg("later", dueLater)
		m.ExpireAfter, m.Priority = long, new(uint32(4))
		b.push(m)
		before := map[engine.State][]engine.Info{}
		for state := engine.Scheduled; state <= engine.Dead; state++ {
			before[state] = b.list(lister, state, 10, nil)
		}
		b.reopen()
		lister = b.e.(engine.Lister)
		for state, want := range before {
			got := b.list(lister, state, 10, nil)
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
	{"what was handled, cancelled or settled stays so", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.push(b.msg("acked", dueNow))
		acked := b.leaseRemote()
		b.ack(acked.Token)
		gone := b.push(b.msg("cancelled", dueLater))
		b.is(b.cancel(b.id(gone.ID)), nil)
		b.push(b.msg("retried", dueNow))
		b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: engine.Retry, When: &engine.When{}, Reason: "why"})
		b.reopen()
		b.lost(acked.Token)
		b.absent(b.id(gone.ID))
		if l := b.lease1(0); l.Attempt != 2 || l.LastError != "why" {
			b.Fatalf("%+v", l.Info)
		}
		b.none("one was left")
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
	{"pauses survive", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.need("Pause", b.caps.Pause)
		b.push(b.msg("k", dueNow))
		b.is(b.e.(engine.Pauser).Pause(b.Context(), b.queue, 0), nil)
		b.reopen()
		b.none("paused")
		b.is(b.e.(engine.Pauser).Resume(b.Context(), b.queue), nil)
		b.lease1(0)
	}},
	{"what falls due while it is closed is due", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		r := b.push(b.msg("k", b.in(1)))
		b.reopen()
		b.pass(1)
		if l := b.lease1(0); l.ID != r.ID {
			b.Fatalf("%+v", l)
		}
	}},
}
