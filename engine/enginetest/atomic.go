package enginetest

import "github.com/tarryhq/tarry/engine"

var atomicTests = []test{
	{"all are kept", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		msgs := []engine.Message{b.msg("a", dueNow), b.msg("b", dueNow), b.msg("", dueNow)}
		r, err := p.PushAtomic(b.Context(), msgs)
		if err != nil || len(r) != len(msgs) {
			b.Fatalf("%v, %+v", err, r)
		}
		for _, r := range r {
			if r.Err != nil || r.Outcome != engine.Created {
				b.Fatalf("%+v", r)
			}
		}
		b.leaseN(3, 0)
	}},
	{"none is kept when one fails", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		b.need("Keys", b.caps.Keys)
		held := b.push(b.msg("held", dueLater))
		change := b.msg("held", dueNow)
		change.OnConflict = engine.Rearm
		r, err := p.PushAtomic(b.Context(), []engine.Message{b.msg("a", dueNow), change, b.msg("held", dueNow), b.msg("c", dueNow)})
		b.is(err, engine.ErrExists)
		if len(r) == 4 {
			b.is(r[2].Err, engine.ErrExists)
		}
		b.none("nothing was kept")
		if b.caps.Get {
			b.absent(b.key("a"))
			b.absent(b.key("c"))
			if i := b.get(b.key("held")); !i.Due.Equal(held.Due) || i.State != engine.Scheduled {
				b.Fatalf("the live one changed: %+v", i)
			}
		}
		b.push(b.msg("a", dueNow))
	}},
	{"the second push of a key meets the first", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		b.need("Keys", b.caps.Keys)
		_, err := p.PushAtomic(b.Context(), []engine.Message{b.msg("a", dueNow), b.msg("a", dueNow)})
		b.is(err, engine.ErrExists)
		b.none("nothing was kept")
	}},
}
