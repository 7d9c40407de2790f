package enginetest

import (
	"github.com/tarryhq/tarry/engine"
)

var conflictTests = []test{
	{"reject describes the live one", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		first := b.push(b.msg("k", dueLater))
		r := b.tryPush(b.msg("k", dueNow))
		b.is(r.Err, engine.ErrExists)
		if r.Outcome != 0 || r.ID != first.ID || r.State != engine.Scheduled || !r.Due.Equal(first.Due) {
			b.Fatalf("result %+v, live one %+v", r, first)
		}
	}},
	{"keep answers with the live one in any state", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for key, due := range map[string]engine.When{"ready": dueNow, "scheduled": dueLater} {
			first := b.push(b.msg(key, due))
			if r := b.pushAs(engine.Keep, key, b.in(1)); r.Outcome != engine.Kept || r.ID != first.ID || r.State != first.State || !r.Due.Equal(first.Due) {
				b.Errorf("%s: result %+v, live one %+v", key, r, first)
			}
		}
		l := b.lease1(0)
		if r := b.pushAs(engine.Keep, "ready", dueLater); r.Outcome != engine.Kept || r.ID != l.ID || r.State != engine.Leased {
			b.Errorf("leased: result %+v", r)
		}
		b.is(b.tryPush(b.msg("ready", dueNow)).Err, engine.ErrExists)
		b.ack(l.Token) // neither keep nor reject took the lease
	}},
	{"replace, keep_due and rearm of a leased message fail", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		for c := engine.Replace; c <= engine.Rearm; c++ {
			m := b.msg("k", dueNow)
			m.OnConflict = c
			r := b.tryPush(m)
			b.is(r.Err, engine.ErrLeased)
			if r.ID != l.ID || r.State != engine.Leased {
				b.Fatalf("%v: %+v", c, r)
			}
		}
		b.ack(l.Token)
	}},
	{"a handled, cancelled or dead message frees its key", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		first := b.push(b.msg("k", dueNow))
		b.ack(b.lease1(0).Token)
		second := b.push(b.msg("k", dueNow))
		b.bury(b.lease1(0).Token, "hopeless")
		third := b.push(b.msg("k", dueNow))
		if first.ID == second.ID || second.ID == third.ID || third.Outcome != engine.Created {
			b.Fatalf("%+v, %+v, %+v", first, second, third)
		}
		if b.caps.Cancel {
			b.is(b.cancel(b.key("k")), nil)
			b.push(b.msg("k", dueNow))
		}
	}},
}

// pushAs pushes a message with a conflict policy, which must succeed.
func (b *bed) pushAs(c engine.Conflict, key string, due engine.When) engine.PushResult {
	b.Helper()
	m := b.msg(key, due)
	m.OnConflict = c
	return b.push(m)
}
