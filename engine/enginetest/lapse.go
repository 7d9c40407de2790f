package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

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
	{"it shows as ready at once", func(b *bed) {
		b.need("Get", b.caps.Get)
		r := b.push(b.msg("k", dueNow))
		b.lease1(b.unit)
		b.pass(1)
		if i := b.state(b.id(r.ID), engine.Ready, 1); !i.Deadline.IsZero() {
			b.Fatalf("a ready one with deadline %v", i.Deadline)
		}
		if b.caps.Keys {
			b.state(b.key("k"), engine.Ready, 1)
		}
	}},
	{"the last attempt's lapse makes it dead", func(b *bed) {
		b.need("Get", b.caps.Get)
		m := b.msg("k", dueNow)
		m.MaxAttempts = 2
		r := b.push(m)
		b.lease1(b.unit)
		b.pass(1)
		b.lease1(b.unit)
		b.pass(1)
		i := b.state(b.id(r.ID), engine.Dead, 2)
		if i.LastError != engine.Lapsed || i.Died.IsZero() || !i.Deadline.IsZero() {
			b.Fatalf("%+v", i)
		}
		b.none("its attempts are used up")
		if i = b.state(b.id(r.ID), engine.Dead, 2); i.LastError != engine.Lapsed {
			b.Fatalf("%+v", i)
		}
	}},
	{"it died at its deadline, whenever that was noticed", func(b *bed) {
		b.need("Get", b.caps.Get)
		for _, sweep := range []bool{false, true} {
			l := b.spent("")
			b.pass(2)
			if sweep {
				b.none("dead")
			}
			if i := b.state(b.id(l.ID), engine.Dead, 1); !i.Died.Equal(l.Deadline) {
				b.Fatalf("swept %v: died %v, not at its deadline %v", sweep, i.Died, l.Deadline)
			}
		}
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
	{"a late extend makes it leased again", func(b *bed) {
		b.need("Extend", b.caps.Extend)
		b.push(b.msg("k", dueNow))
		l := b.lease1(b.unit)
		b.pass(1)
		if s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: long}); s.State != engine.Leased {
			b.Fatalf("%+v", s)
		}
		b.none("held again")
		b.ack(l.Token)
	}},
	{"a late snooze and a late release give the attempt back", func(b *bed) {
		b.need("Get", b.caps.Get)
		b.need("GiveBack", b.caps.GiveBack)
		for _, s := range []engine.Settlement{{Do: engine.Release}, {Do: engine.Snooze, When: &engine.When{}}} {
			r := b.push(b.msg("", dueNow))
			s.Token = b.lease1(b.unit).Token
			b.pass(1)
			b.settle(s)
			b.state(b.id(r.ID), engine.Ready, 0)
			b.ack(b.lease1(0).Token)
		}
	}},
	{"a late ack removes one that the lapse made dead", func(b *bed) {
		b.need("Get", b.caps.Get)
		for _, sweep := range []bool{false, true} {
			l := b.spent("")
			if sweep {
				b.none("dead")
			}
			b.ack(l.Token)
			b.absent(b.id(l.ID))
		}
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
	{"cancel of a lapsed message succeeds and ends its token", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		var l engine.Lease
		var err error
		b.inTime(func() time.Time {
			b.push(b.msg("k", dueNow))
			l = b.lease1(b.unit)
			err = b.cancel(b.id(l.ID))
			return l.Deadline
		})
		b.is(err, engine.ErrLeased)
		b.pass(1)
		b.is(b.cancel(b.id(l.ID)), nil)
		b.lost(l.Token)
		b.none("cancelled")
	}},
	{"reschedule of a lapsed message succeeds and ends its token", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(b.unit)
		b.pass(1)
		i, err := b.e.Reschedule(b.Context(), b.id(r.ID), dueLater)
		b.is(err, nil)
		if i.State != engine.Scheduled || i.Attempt != 0 {
			b.Fatalf("%+v", i)
		}
		b.lost(l.Token)
		b.none("rescheduled")
	}},
	{"replace and rearm of a lapsed message succeed and end its token", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for c := engine.Replace; c <= engine.Rearm; c++ {
			first := b.push(b.msg(c.String(), dueNow))
			l := b.lease1(b.unit)
			b.pass(1)
			r := b.pushAs(c, c.String(), dueLater)
			if r.Outcome != engine.Replaced || r.ID != first.ID {
				b.Fatalf("%v: %+v", c, r)
			}
			b.lost(l.Token)
			if c == engine.KeepDue {
				b.ack(b.lease1(0).Token) // its due stayed
			}
		}
	}},
	{"keep and reject leave a lapsed message and its token", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.push(b.msg("k", dueNow))
		l := b.lease1(b.unit)
		b.pass(1)
		if r := b.pushAs(engine.Keep, "k", dueLater); r.Outcome != engine.Kept || r.State != engine.Ready || r.ID != l.ID {
			b.Fatalf("%+v", r)
		}
		b.is(b.tryPush(b.msg("k", dueNow)).Err, engine.ErrExists)
		b.ack(l.Token)
	}},
}
