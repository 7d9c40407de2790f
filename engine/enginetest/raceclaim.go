package enginetest

import (
	"errors"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// asleep makes a message that is scheduled, or for odd i one that is dead, and returns its id.
func (b *bed) asleep(i int) (engine.State, engine.ID) {
	b.Helper()
	if i%2 == 0 {
		return engine.Scheduled, b.push(b.msg("", dueLater)).ID
	}
	return engine.Dead, b.deadOnes("")[0]
}

var raceClaimTests = []test{
	{"of many that claim one, one gets it", func(b *bed) {
		b.needClaimIf()
		for i := range rounds {
			state, id := b.asleep(i)
			var won atomic.Int32
			claim := func() {
				l, err := b.tryClaim(b.id(id), state, engine.Want{})
				switch {
				case err == nil:
					won.Add(1)
					b.ack(l.Token)
				case !errors.Is(err, engine.ErrStale) && !errors.Is(err, engine.ErrNotFound):
					b.Errorf("claim: %v", err)
				}
			}
			if race(claim, claim, claim); won.Load() != 1 {
				b.Fatalf("%d of 3 claimed it", won.Load())
			}
		}
	}},
	{"no lease comes between waking a message and claiming it", func(b *bed) {
		b.needClaimIf()
		for i := range rounds {
			state, id := b.asleep(i)
			var l engine.Lease
			var err error
			var leased atomic.Int32
			lease := func() { leased.Add(int32(len(b.take(1)))) }
			race(func() { l, err = b.tryClaim(b.id(id), state, engine.Want{}) }, lease, lease)
			if err != nil || leased.Load() > 0 {
				b.Fatalf("claim: %v; leased %d", err, leased.Load())
			}
			b.ack(l.Token)
		}
	}},
	{"a claim of a dead one against a push of its key: one is live", func(b *bed) {
		b.needClaimIf()
		b.need("Keys", b.caps.Keys)
		for range rounds {
			id := b.deadOnes("k")[0]
			var l engine.Lease
			var err error
			var r engine.PushResult
			race(func() { l, err = b.tryClaim(b.id(id), engine.Dead, engine.Want{}) }, func() { r = b.pushed(b.msg("k", dueNow)) })
			switch {
			case err == nil && errors.Is(r.Err, engine.ErrExists):
				b.ack(l.Token)
			case r.Err == nil && errors.Is(err, engine.ErrExists):
				b.ack(b.lease1(0).Token)
			default:
				b.Fatalf("claim: %v; push: %+v", err, r)
			}
			b.none("one message for one key")
		}
	}},
	{"a claim of a dead one against a redrive: one of them wins", func(b *bed) {
		b.needClaimIf()
		e := optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		for range rounds {
			id := b.deadOnes("")[0]
			var l engine.Lease
			var r engine.Redriven
			var err, failed error
			race(func() { l, err = b.tryClaim(b.id(id), engine.Dead, engine.Want{}) },
				func() { r, failed = e.Redrive(b.Context(), b.queue, []engine.ID{id}, 0) })
			switch {
			case err == nil && failed == nil && r.Redriven == 0:
				b.ack(l.Token)
			case errors.Is(err, engine.ErrStale) && r.Redriven == 1:
				b.ack(b.lease1(0).Token)
			default:
				b.Fatalf("claim: %v; redrive: %+v, %v", err, r, failed)
			}
		}
	}},
	{"a claim against a cancel: one of them wins", func(b *bed) {
		b.needClaimIf()
		b.need("Cancel", b.caps.Cancel)
		for i := range rounds {
			state, id := b.asleep(i)
			var l engine.Lease
			var err, refused error
			race(func() { l, err = b.tryClaim(b.id(id), state, engine.Want{}) }, func() { refused = b.cancelled(b.id(id)) })
			switch {
			case err == nil && errors.Is(refused, engine.ErrLeased):
				b.ack(l.Token)
			case !errors.Is(err, engine.ErrNotFound) || refused != nil:
				b.Fatalf("claim: %v; cancel: %v", err, refused)
			}
			b.none("claimed or cancelled")
		}
	}},
}
