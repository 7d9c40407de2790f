package enginetest

import "github.com/tarryhq/tarry/engine"

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
		b.need("Expiry", b.caps.Expiry)
		for _, key := range []string{"a", "b"} {
			m := b.msg(key, dueNow)
			m.ExpireAfter = b.unit
			b.push(m)
		}
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
}
