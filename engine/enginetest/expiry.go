package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// expiring pushes a message that is due now and expires after 2 units.
func (b *bed) expiring(key string) engine.PushResult {
	b.Helper()
	b.need("Expiry", b.caps.Expiry)
	m := b.msg(key, dueNow)
	m.ExpireAfter = b.unit
	return b.push(m)
}

// leaseExpiring pushes a message as expiring does, with the given attempts (0: the usual
// number), and leases it before it expires. On a slow machine it may need several messages.
func (b *bed) leaseExpiring(key string, attempts uint32, ttr time.Duration) (r engine.PushResult, l engine.Lease) {
	b.Helper()
	b.need("Expiry", b.caps.Expiry)
	m := b.msg(key, dueNow)
	m.ExpireAfter, m.MaxAttempts = b.unit, attempts
	r = b.push(m)
	b.eventually("a message to be leased before it expires", func() bool {
		g, now := b.leaseAt(1, ttr)
		if len(g.Messages) == 1 {
			l = g.Messages[0]
			return true
		}
		if !now.Before(r.Due.Add(b.unit)) {
			r = b.push(m)
		}
		return false
	})
	return r, l
}

// leaseOf leases the only message, which must be that of r.
func (b *bed) leaseOf(r engine.PushResult) engine.Lease {
	b.Helper()
	l := b.lease1(0)
	if r.Outcome != engine.Created || l.ID != r.ID {
		b.Fatalf("pushed %+v, leased %v", r, l.ID)
	}
	return l
}

var expiryTests = []test{
	{"what is past its expiry is dropped and counted", func(b *bed) {
		b.expiring("a")
		b.expiring("b")
		stays := b.push(b.msg("c", dueNow))
		b.pass(2)
		expired := 0
		b.eventually("the expired ones to be counted", func() bool {
			g := b.lease(10, 0)
			expired += g.Expired
			for _, l := range g.Messages {
				if l.ID != stays.ID {
					b.Fatalf("leased past its expiry: %+v", l.Info)
				}
			}
			return expired >= 2
		})
		if expired != 2 {
			b.Fatalf("%d counted", expired)
		}
	}},
	{"it is gone for every call at once", func(b *bed) {
		r := b.expiring("k")
		b.pass(2)
		refs := []engine.Ref{b.id(r.ID)}
		if b.caps.Keys {
			refs = append(refs, b.key("k"))
		}
		for _, ref := range refs {
			if b.caps.Get {
				b.absent(ref)
			}
			if b.caps.Cancel {
				b.is(b.cancel(ref), engine.ErrNotFound)
			}
			if b.caps.Reschedule {
				_, err := b.e.Reschedule(b.Context(), ref, dueNow)
				b.is(err, engine.ErrNotFound)
			}
			if b.caps.Claim {
				_, err := b.e.(engine.Claimer).Claim(b.Context(), ref, engine.Want{})
				b.is(err, engine.ErrNotFound)
			}
		}
		if b.caps.Keys {
			if next := b.push(b.msg("k", dueNow)); next.Outcome != engine.Created || next.ID == r.ID {
				b.Fatalf("its key is not free: %+v", next)
			}
		}
	}},
	{"a lease outlives the expiry", func(b *bed) {
		_, l := b.leaseExpiring("k", 0, long)
		b.pass(2)
		b.ack(l.Token)
	}},
	{"a lapse after the expiry drops it", func(b *bed) {
		b.leaseExpiring("k", 0, 2*b.unit)
		b.pass(3)
		b.none("past its expiry")
		if b.caps.Keys {
			b.push(b.msg("k", dueNow))
			b.lease1(0)
		}
	}},
	{"a lapse after the expiry ends its token for every settlement", func(b *bed) {
		for do := engine.Ack; do <= engine.Extend; do++ {
			if do == engine.Extend && !b.caps.Extend {
				continue
			}
			r, l := b.leaseExpiring("k", 0, 2*b.unit)
			b.pass(3)
			s := engine.Settlement{Token: l.Token, Do: do, When: &dueNow, TTR: long}
			b.is(b.trySettle(s).Err, engine.ErrLeaseLost) // nothing has noticed it before
			if b.caps.Get {
				b.absent(b.id(r.ID))
			}
			b.is(b.trySettle(s).Err, engine.ErrLeaseLost)
			if b.caps.Keys {
				b.ack(b.leaseOf(b.push(b.msg("k", dueNow))).Token)
			}
		}
	}},
	{"a lapse before the expiry leaves its token until then", func(b *bed) {
		b.need("Expiry", b.caps.Expiry)
		m := b.msg("k", dueNow)
		m.ExpireAfter = long
		b.push(m)
		l := b.lease1(b.unit)
		b.pass(2)
		b.ack(l.Token)
		b.none("handled, late")
	}},
	{"one that the lapse made dead is settled also past its expiry", func(b *bed) {
		r, l := b.leaseExpiring("k", 1, 2*b.unit)
		b.pass(3)
		b.ack(l.Token)
		if b.caps.Get {
			b.absent(b.id(r.ID))
		}
	}},
	{"retry and snooze do not move it", func(b *bed) {
		b.need("Get", b.caps.Get)
		b.need("Expiry", b.caps.Expiry)
		m := b.msg("k", dueNow)
		m.ExpireAfter = 2 * long
		r := b.push(m)
		for _, do := range []engine.Action{engine.Retry, engine.Snooze} {
			b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: do, When: &dueNow, Reason: "x"})
			if i := b.get(b.id(r.ID)); !i.Expires.Equal(r.Due.Add(m.ExpireAfter)) {
				b.Fatalf("pushed for %v, expires %v", r.Due, i.Expires)
			}
		}
	}},
	{"a redriven message never expires", func(b *bed) {
		d := optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		_, l := b.leaseExpiring("k", 0, 0)
		b.bury(l.Token, "x")
		if _, err := d.Redrive(b.Context(), b.queue, nil, 0); err != nil {
			b.Fatal(err)
		}
		b.pass(3)
		if l := b.lease1(0); !l.Expires.IsZero() {
			b.Fatalf("%+v", l.Info)
		}
	}},
	{"dead messages do not expire", func(b *bed) {
		b.need("Get", b.caps.Get)
		r, l := b.leaseExpiring("k", 0, 0)
		b.bury(l.Token, "x")
		b.pass(3)
		b.none("dead")
		b.state(b.id(r.ID), engine.Dead, 1)
	}},
}
