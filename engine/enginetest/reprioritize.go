package enginetest

import (
	"math"

	"github.com/tarryhq/tarry/engine"
)

// needReprioritize skips the test unless settlements can give a priority.
func (b *bed) needReprioritize() {
	b.Helper()
	b.need("Reprioritize", b.caps.Reprioritize)
	b.need("Get", b.caps.Get)
}

// usual pushes a message that is due and has the usual priority.
func (b *bed) usual(key string) engine.ID { return b.push(b.msg(key, dueNow)).ID }

// priority fails the test unless a message has this priority.
func (b *bed) priority(id engine.ID, want uint32) {
	b.Helper()
	if i := b.get(b.id(id)); i.Priority != want {
		b.Fatalf("%v, which is %v, has priority %d, not %d", id, i.State, i.Priority, want)
	}
}

var reprioritizeTests = []test{
	{"every action that keeps the message gives it one", func(b *bed) {
		b.needReprioritize()
		other := b.push(b.msg("other", dueLater)).ID
		for _, do := range []engine.Action{engine.Retry, engine.Snooze, engine.Release, engine.Bury} {
			for _, p := range []uint32{0, 77, math.MaxUint32} {
				id := b.usual("")
				b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: do, When: &dueLater, Priority: &p})
				b.priority(id, p)
				b.priority(other, engine.DefaultPriority)
				if do == engine.Release {
					b.ack(b.lease1(0).Token)
				}
			}
		}
	}},
	{"extend and none leave it", func(b *bed) {
		b.needReprioritize()
		id := b.usual("k")
		l := b.lease1(0)
		if b.caps.Extend {
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, Priority: new(uint32(1))})
			b.priority(id, engine.DefaultPriority)
		}
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Release, Priority: new(uint32(7))})
		b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: engine.Release})
		b.priority(id, 7)
		b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: engine.Ack, Priority: new(uint32(9))})
		b.absent(b.id(id))
	}},
	{"the order follows at once", func(b *bed) {
		b.needReprioritize()
		first, second := b.usual("a"), b.usual("b")
		give := func(l engine.Lease, p uint32) {
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Release, Priority: &p})
		}
		for _, step := range []struct {
			leased engine.ID
			p      uint32
			next   engine.ID
		}{
			{first, engine.DefaultPriority + 1, second}, {second, engine.DefaultPriority + 2, first}, {first, math.MaxUint32, second},
			{second, 0, second}, {second, math.MaxUint32, first},
		} {
			l := b.lease1(0)
			if l.ID != step.leased {
				b.Fatalf("leased %v, not %v", l.ID, step.leased)
			}
			give(l, step.p)
			if b.caps.Peek {
				b.isFirst(step.next)
			}
		}
	}},
	{"a retry that makes it dead gives it one too, which it comes back with", func(b *bed) {
		b.needReprioritize()
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		m := b.msg("k", dueNow)
		m.MaxAttempts = 1
		id := b.push(m).ID
		s := b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: engine.Retry, When: &dueNow, Priority: new(uint32(5))})
		if s.State != engine.Dead {
			b.Fatalf("%+v", s)
		}
		b.priority(id, 5)
		b.usual("other")
		b.redrive(0, id)
		if l := b.lease1(0); l.ID != id || l.Priority != 5 {
			b.Fatalf("leased %+v", l.Info)
		}
	}},
	{"a late settlement gives one to what lapsed", func(b *bed) {
		b.needReprioritize()
		b.need("GiveBack", b.caps.GiveBack)
		dead := b.spent("dead")
		b.usual("a")
		l := b.lease1(b.unit)
		b.pass(1)
		other := b.usual("b")
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Release, Priority: new(uint32(2000))})
		b.settle(engine.Settlement{Token: dead.Token, Do: engine.Release, Priority: new(uint32(3000))})
		b.sameIDs("in order", leaseIDs(b.leaseN(3, 0)), []engine.ID{other, l.ID, dead.ID})
	}},
	{"in a batch each has its own", func(b *bed) {
		b.needReprioritize()
		const n = 20
		for range n {
			b.usual("")
		}
		leases := b.leaseN(n, 0)
		settle := make([]engine.Settlement, n)
		want := make([]engine.ID, n)
		for i, l := range leases {
			p := uint32(i * 7 % n)
			settle[i] = engine.Settlement{Token: l.Token, Do: engine.Release, Priority: &p}
			want[p] = l.ID
		}
		settled, err := b.e.Settle(b.Context(), settle)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range settled {
			b.is(s.Err, nil)
		}
		var got []engine.ID
		for range n {
			got = append(got, b.lease1(0).ID)
		}
		b.sameIDs("in order", got, want)
	}},
	{"it survives", func(b *bed) {
		b.needReprioritize()
		b.need("to reopen", b.h.Reopen != nil)
		var ids []engine.ID
		for i, do := range []engine.Action{engine.Retry, engine.Snooze, engine.Release, engine.Bury} {
			ids = append(ids, b.usual(""))
			b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: do, When: &dueLater, Priority: new(uint32(2000 + i))})
		}
		b.reopen()
		for i, id := range ids {
			b.priority(id, uint32(2000+i))
		}
	}},
}
