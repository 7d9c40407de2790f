package enginetest

import (
	"testing"
	"time"

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
	{"replace takes new content and due", func(b *bed) {
		first, pushed, after := b.conflict(engine.Replace, dueLater, dueNow)
		if after.State != engine.Ready || string(after.Body) != "new" || samePolicy(after.Policy, pushed) != "" || !after.Created.Equal(first.Created) {
			b.Fatalf("became %+v", after)
		}
		if !after.Expires.Equal(expires(after.Due, pushed)) {
			b.Fatalf("due %v, expires %v", after.Due, after.Expires)
		}
		if l := b.lease1(0); l.ID != first.ID || string(l.Body) != "new" {
			b.Fatalf("leased %+v", l)
		}
		b.none("one message for one key")
	}},
	{"keep_due takes new content at the old due", func(b *bed) {
		first, pushed, after := b.conflict(engine.KeepDue, dueLater, dueNow)
		if after.State != engine.Scheduled || string(after.Body) != "new" || samePolicy(after.Policy, pushed) != "" || !after.Due.Equal(first.Due) {
			b.Fatalf("became %+v", after)
		}
		if !after.Expires.Equal(expires(after.Due, pushed)) {
			b.Fatalf("due %v, expires %v", after.Due, after.Expires)
		}
		b.none("the old due")
	}},
	{"rearm takes the new due alone", func(b *bed) {
		first, _, after := b.conflict(engine.Rearm, dueNow, dueLater)
		if after.State != engine.Scheduled || string(after.Body) != string(first.Body) || samePolicy(after.Policy, first.Policy) != "" {
			b.Fatalf("became %+v", after)
		}
		if !after.Due.After(first.Due) || !after.Expires.Equal(expires(after.Due, first.Policy)) {
			b.Fatalf("due %v, expires %v", after.Due, after.Expires)
		}
		b.none("wound back")
	}},
	{"a key that nobody holds creates under every policy", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for c := engine.Reject; c <= engine.Rearm; c++ {
			if r := b.pushAs(c, c.String(), dueLater); r.Outcome != engine.Created {
				b.Errorf("%v: %+v", c, r)
			}
		}
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
	{"replace, keep_due and rearm set the attempt to 0", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		for c := engine.Replace; c <= engine.Rearm; c++ {
			b.Run(c.String(), func(t *testing.T) {
				at := engine.When{At: b.now().Add(-time.Hour)}
				b.push(b.msg(c.String(), at))
				l := b.lease1(0)
				b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &at, Reason: "no"})
				b.pushAs(c, c.String(), at)
				if l = b.lease1(0); l.Attempt != 1 {
					t.Fatalf("attempt %d", l.Attempt)
				}
			})
		}
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

// conflict pushes a key twice, the second time with other content, policy and due. It
// returns the message before and after, and the other policy.
func (b *bed) conflict(c engine.Conflict, due, then engine.When) (before engine.Info, other engine.Policy, after engine.Info) {
	b.Helper()
	b.need("Keys", b.caps.Keys)
	b.need("Get", b.caps.Get)
	m := b.msg("k", due)
	m.ExpireAfter = long
	m.Terms = b.able(m.Terms)
	first := b.push(m)
	before = b.get(b.id(first.ID))
	m.Due, m.OnConflict, m.Body, m.Priority, m.TTR, m.ExpireAfter = then, c, []byte("new"), new(uint32(5)), time.Hour, 2*long
	m.Terms = b.able(m.Terms)
	r := b.push(m)
	if r.Outcome != engine.Replaced || r.ID != first.ID {
		b.Fatalf("%v: %+v, live one %+v", c, r, first)
	}
	after = b.get(b.key("k"))
	if after.ID != r.ID || !after.Due.Equal(r.Due) || after.State != r.State || after.Attempt != 0 {
		b.Fatalf("%v: answered %+v, is %+v", c, r, after)
	}
	return before, m.Resolve(nil), after
}
