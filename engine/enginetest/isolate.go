package enginetest

import (
	"time"

	"github.com/tarryhq/tarry/engine"
)

// isolated pushes n messages whose leases last for a unit.
func (b *bed) isolated(n int) {
	b.Helper()
	b.need("Isolate", b.caps.Isolate)
	for range n {
		b.push(b.brief())
	}
}

func (b *bed) brief() engine.Message {
	m := b.msg("", dueNow)
	m.TTR, m.MaxAttempts = b.unit, 4
	return m
}

// lapseTwice lets two leases of each of n messages lapse, and the spread of the second pass.
func (b *bed) lapseTwice(n int) {
	b.Helper()
	b.leaseN(n, 0)
	b.pass(1)
	b.leaseN(n, 0)
	b.pass(1 + int((2*time.Second+b.unit-1)/b.unit))
}

var isolateTests = []test{
	{"what lapsed twice is granted alone", func(b *bed) {
		b.need("a queue in one part", !b.caps.Shares)
		const n = 4
		b.isolated(n)
		b.lapseTwice(n)
		var before engine.Message
		if b.caps.Priority {
			before = b.brief()
			before.Priority = new(uint32(0))
			b.push(before)
		}
		got := map[engine.ID]bool{}
		b.eventually("each to come", func() bool {
			for _, want := range []int{1, 1, 1, 1, 1, 0} {
				g := b.lease(10, long)
				if len(g.Messages) > 1 || want == 1 && len(g.Messages) == 0 && len(got) < n && b.h.Clock != nil {
					b.Fatalf("%d messages in one grant, after %d", len(g.Messages), len(got))
				}
				for _, l := range g.Messages {
					got[l.ID] = true
					b.ack(l.Token)
				}
			}
			return len(got) == n || b.caps.Priority && len(got) == n+1
		})
	}},
	{"one that lapsed twice waits for its own grant behind others", func(b *bed) {
		b.need("Priority", b.caps.Priority)
		b.need("a queue in one part", !b.caps.Shares)
		b.isolated(1)
		b.lapseTwice(1)
		for range 3 {
			m := b.msg("", dueNow)
			m.Priority = new(uint32(1))
			b.push(m)
		}
		for _, l := range b.leaseN(3, long) {
			if l.Attempt != 1 {
				b.Fatalf("attempt %d in one grant with others", l.Attempt)
			}
		}
		if l := b.lease1(long); l.Attempt != 3 || l.LastError != engine.Lapsed {
			b.Fatalf("leased %+v", l.Info)
		}
	}},
	{"a message that says so is never isolated", func(b *bed) {
		b.need("Isolate", b.caps.Isolate)
		b.need("Settings", b.caps.Settings)
		const n = 3
		for i := range n {
			m := b.brief()
			m.Isolate = new(false)
			if i > 0 {
				b.configure(engine.Settings{Defaults: engine.Terms{Isolate: new(false)}})
				m.Isolate = nil
			}
			b.push(m)
		}
		for range 3 {
			b.leaseN(n, 0)
			b.pass(1)
		}
	}},
}
