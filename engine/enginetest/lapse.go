package enginetest

import "github.com/tarryhq/tarry/engine"

// spent pushes a message and lets its only lease lapse.
func (b *bed) spent(key string) engine.Lease {
	b.Helper()
	m := b.msg(key, dueNow)
	m.MaxAttempts = 1
	b.push(m)
	l := b.lease1(b.unit)
	b.pass(1)
	return l
}

var lapseTests = []test{
	{"a lapsed message is leased again, its attempt counted", func(b *bed) {
		b.push(b.msg("k", dueNow))
		first := b.lease1(b.unit)
		b.pass(1)
		second := b.lease1(0)
		if second.ID != first.ID || second.Attempt != 2 || second.Token == first.Token || !second.Due.Equal(first.Due) {
			b.Fatalf("leased %+v, then %+v", first, second)
		}
		b.lost(first.Token)
		b.ack(second.Token)
	}},
	{"a call gives no message out twice, however short the leases", func(b *bed) {
		const n = 30
		ids := map[engine.ID]bool{}
		for range n {
			ids[b.push(b.msg("", dueNow)).ID] = true
		}
		b.eventually("each to come", func() bool {
			for more := true; more; {
				given := map[engine.ID]bool{}
				for _, l := range b.lease(n, engine.MinTTR).Messages {
					if given[l.ID] {
						b.Fatalf("id %v is given out twice", l.ID)
					}
					given[l.ID] = true
					delete(ids, l.ID)
				}
				more = len(given) > 0 && len(ids) > 0
			}
			return len(ids) == 0
		})
	}},
	{"a grant counts what died", func(b *bed) {
		b.spent("k")
		died := 0
		b.eventually("a grant to count the dead one", func() bool {
			died += b.lease(1, 0).Died
			return died > 0
		})
		if died += b.lease(1, 0).Died; died != 1 {
			b.Fatalf("%d died", died)
		}
	}},
	{"a late settlement stands while nothing else was decided", func(b *bed) {
		b.push(b.msg("k", dueNow))
		l := b.lease1(b.unit)
		b.pass(1)
		b.ack(l.Token)
		b.none("handled, late")
		b.lost(l.Token)
	}},
	{"a late settlement stands after a sweep that leased nothing", func(b *bed) {
		b.need("Pause", b.caps.Pause)
		b.push(b.msg("k", dueNow))
		l := b.lease1(b.unit)
		b.is(b.e.(engine.Pauser).Pause(b.Context(), b.queue, 0), nil)
		b.pass(1)
		b.none("paused")
		b.ack(l.Token)
	}},
	{"the token of one that lapsed dead cannot take back a key given away", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.need("GiveBack", b.caps.GiveBack)
		l := b.spent("k")
		next := b.push(b.msg("k", dueNow))
		if next.Outcome != engine.Created || next.ID == l.ID {
			b.Fatalf("%+v", next)
		}
		s := b.trySettle(engine.Settlement{Token: l.Token, Do: engine.Release})
		b.is(s.Err, engine.ErrLeaseLost)
		if got := b.lease(10, 0).Messages; len(got) != 1 || got[0].ID != next.ID {
			b.Fatalf("leased %+v", got)
		}
	}},
}
