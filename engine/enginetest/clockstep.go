package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// needClock skips the test with a message if the engine's clock cannot be moved.
func (b *bed) needClock() {
	b.Helper()
	if b.h.Clock == nil {
		b.Skipf("%s: its clock cannot be moved", b.caps.Name)
	}
}

var clockStepTests = []test{
	{"what was ready waits again for its due time", func(b *bed) {
		b.needClock()
		c := optional[engine.Counter](b, "Count", b.caps.Count)
		late := b.push(b.msg("k", b.in(3)))
		early := b.push(b.msg("early", b.in(1)))
		b.pass(3)
		b.counts(c, 0, 2, 0, 0)
		b.h.Clock.Advance(-b.unit)
		b.counts(c, 1, 1, 0, 0)
		if l := b.lease1(0); l.ID != early.ID {
			b.Fatalf("leased id %v, which is not due any more", l.ID)
		}
		b.none("the other is not due any more")
		b.pass(1)
		if l := b.lease1(0); l.ID != late.ID {
			b.Fatalf("leased id %v, not %v", l.ID, late.ID)
		}
	}},
	{"what a lease left waits again for its due time", func(b *bed) {
		b.needClock()
		b.push(b.msg("leased", b.in(1)))
		later := []engine.PushResult{b.push(b.msg("k", b.in(2))), b.push(b.msg("later", b.in(3)))}
		b.pass(3)
		b.lease1(long) // the engine has met all three
		b.h.Clock.Advance(-2 * b.unit)
		for _, r := range later {
			b.none("neither is due any more")
			if b.caps.Claim {
				_, err := b.e.(engine.Claimer).Claim(b.Context(), b.id(r.ID), engine.Want{})
				b.is(err, engine.ErrNotDue)
			}
			b.pass(1)
			if l := b.lease1(long); l.ID != r.ID {
				b.Fatalf("leased id %v, not %v", l.ID, r.ID)
			}
		}
		b.none("all are leased")
	}},
	{"what was leased stays so, until its deadline comes", func(b *bed) {
		b.needClock()
		b.push(b.msg("k", b.in(2)))
		b.pass(2)
		l := b.lease1(2 * b.unit)
		b.h.Clock.Advance(-b.unit)
		for range 2 { // of its three units now
			b.none("it is leased")
			if b.caps.Get {
				b.state(b.id(l.ID), engine.Leased, 1)
			}
			b.pass(2)
		}
		again := b.lease1(0)
		if again.ID != l.ID || again.Attempt != 2 {
			b.Fatalf("leased %+v", again.Info)
		}
		b.ack(again.Token)
		b.none("it is acked")
	}},
	{"what its process left behind waits again for its due time", func(b *bed) {
		b.needClock()
		b.push(b.msg("k", b.in(2)))
		b.pass(2)
		l := b.lease1(long)
		b.h.Clock.Advance(-b.unit)
		b.reopen()
		b.none("it is not due any more")
		b.pass(1)
		if again := b.lease1(0); again.ID != l.ID {
			b.Fatalf("leased id %v, not %v", again.ID, l.ID)
		}
	}},
	{"what waits again since its lease has lapsed is still settled by its token", func(b *bed) {
		b.needClock()
		b.need("to extend leases", b.caps.Extend)
		b.push(b.msg("k", b.in(3)))
		b.pass(3)
		l := b.lease1(long)
		b.h.Clock.Advance(-2 * b.unit)
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: b.unit})
		b.pass(1)
		b.none("it is not due any more")
		b.ack(l.Token)
		b.pass(1)
		b.none("it is acked")
	}},
	{"what was handled stays so", func(b *bed) {
		b.needClock()
		b.push(b.msg("k", b.in(1)))
		b.pass(1)
		b.ack(b.lease1(0).Token)
		b.h.Clock.Advance(-time.Hour)
		b.none("it is acked")
		b.h.Clock.Advance(2 * time.Hour)
		b.none("it is acked")
	}},
}
