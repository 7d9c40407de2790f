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
		m.Terms = b.able(m.Terms)
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
	{"settings and their revisions survive", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.need("Settings", b.caps.Settings)
		b.configure(engine.Settings{})
		revision := b.configure(b.allSet())
		b.reopen()
		b.configured(b.allSet(), revision)
		_, err := b.e.(engine.Configurer).Configure(b.Context(), b.queue, engine.Settings{}, "1")
		b.is(err, engine.ErrStale)
		unset := b.configure(engine.Settings{})
		b.reopen()
		b.configured(engine.Settings{}, unset)
	}},
	{"settings act on", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.needWhole()
		b.need("RemoteLeases", b.caps.RemoteLeases)
		b.configure(engine.Settings{InFlight: 1, MaxPending: 3, DeadMax: 1, Defaults: engine.Terms{MaxAttempts: 7}})
		dead := b.deadOnes("a", "b")
		b.pushAll(2)
		held := b.leaseRemote()
		b.reopen()
		b.heldBack(b.lease(2, 0), 0)
		b.push(b.msg("", dueLater))
		b.is(b.tryPush(b.msg("", dueLater)).Err, engine.ErrLimit)
		b.unseen(dead[0])
		b.ack(held.Token)
		l := b.lease1(0)
		if l.MaxAttempts != 7 {
			b.Fatalf("%+v", l.Info)
		}
		b.bury(l.Token, "x")
		b.unseen(dead[1])
	}},
	{"memories survive, and end in time", func(b *bed) {
		b.need("to reopen", b.h.Reopen != nil)
		b.needRemember()
		stays, passes := b.handled("stays", long), b.handled("passes", 2*b.unit)
		if b.caps.Expiry {
			m := b.fleeting("expires", dueNow, long)
			m.ExpireAfter = b.unit
			b.push(m)
		}
		before := b.get(b.key("stays"))
		b.reopen()
		if problem := sameInfo(b.finished(stays, "stays", engine.Acked), before); problem != "" {
			b.Error(problem)
		}
		if b.h.Clock != nil {
			b.finished(passes, "passes", engine.Acked)
		}
		b.is(b.tryPush(b.msg("stays", dueNow)).Err, engine.ErrExists)
		b.pass(3)
		b.free("passes")
		if b.caps.Expiry {
			b.is(b.tryPush(b.msg("expires", dueNow)).Err, engine.ErrExists)
		}
		b.ack(b.lease1(0).Token)
		b.reopen()
		b.finished(stays, "stays", engine.Acked)
		b.absent(b.key("passes"))
		if b.caps.Expiry {
			b.is(b.tryPush(b.msg("expires", dueNow)).Err, engine.ErrExists)
		}
		if b.caps.Count {
			want := int64(1)
			if b.caps.Expiry {
				want = 2
			}
			b.none("nothing is left")
			if q := b.counts(b.e.(engine.Counter), 0, 0, 0, 0); q.Finished != want {
				b.Fatalf("%+v, want %d finished", q, want)
			}
		}
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
