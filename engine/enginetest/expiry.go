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
}
