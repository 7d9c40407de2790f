package enginetest

import (
	"strings"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var settleTests = []test{
	{"ack removes it, once", func(b *bed) {
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Ack})
		if s.State != engine.Gone {
			b.Fatalf("%+v", s)
		}
		if q := s.Queue; q != l.Queue && !(q == "" && b.caps.LeaseWait) { // such engines may not know the queue
			b.Fatalf("settled a message of %q, it says %q", l.Queue, q)
		}
		b.lost(l.Token)
		b.none("handled")
		if b.caps.Get {
			b.absent(b.id(r.ID))
		}
	}},
	{"every action ends the lease but extend", func(b *bed) {
		for do := engine.Ack; do <= engine.Bury; do++ {
			b.push(b.msg("", dueNow))
			l := b.lease1(0)
			b.settle(engine.Settlement{Token: l.Token, Do: do, When: &dueLater, Reason: "x"})
			for again := engine.Ack; again <= engine.Extend; again++ {
				if again == engine.Extend && !b.caps.Extend {
					continue
				}
				b.is(b.trySettle(engine.Settlement{Token: l.Token, Do: again, When: &dueLater}).Err, engine.ErrLeaseLost)
			}
			if do == engine.Release {
				b.ack(b.lease1(0).Token)
			}
		}
	}},
	{"retry comes back after the message's own backoff", func(b *bed) {
		m := b.msg("k", dueNow)
		m.Backoff = []time.Duration{time.Hour, 3 * time.Hour}
		b.push(m)
		for i, want := range []time.Duration{time.Hour, 3 * time.Hour, 3 * time.Hour} {
			l := b.lease1(0)
			before := b.now()
			s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, Reason: "again"})
			if s.State != engine.Scheduled || s.Until.Before(before.Add(want).Truncate(b.caps.Precision)) || s.Until.After(b.now().Add(want+time.Second)) {
				b.Fatalf("attempt %d: %+v, want %v from %v", i+1, s, want, before)
			}
			b.none("resting")
			if b.h.Clock == nil {
				return // the later ones are hours away
			}
			b.h.Clock.Set(s.Until)
		}
	}},
	{"retry keeps the attempt and the reason", func(b *bed) {
		b.push(b.msg("k", dueNow))
		for attempt := range uint32(3) {
			l := b.lease1(0)
			if l.Attempt != attempt+1 || attempt > 0 && l.LastError != "no luck" {
				b.Fatalf("%+v", l.Info)
			}
			s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &engine.When{}, Reason: "no luck"})
			if s.State != engine.Ready {
				b.Fatalf("%+v", s)
			}
		}
	}},
	{"retry of the last attempt makes it dead", func(b *bed) {
		m := b.msg("k", dueNow)
		m.MaxAttempts = 1
		r := b.push(m)
		l := b.lease1(0)
		if s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Retry, When: &engine.When{}, Reason: "last"}); s.State != engine.Dead {
			b.Fatalf("%+v", s)
		}
		b.none("dead")
		if b.caps.Get {
			if i := b.state(b.id(r.ID), engine.Dead, 1); i.LastError != "last" || i.Died.IsZero() {
				b.Fatalf("%+v", i)
			}
		}
	}},
	{"bury makes it dead, attempt and reason kept", func(b *bed) {
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		long := strings.Repeat("é", engine.MaxReason)
		if s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Bury, Reason: long}); s.State != engine.Dead {
			b.Fatalf("%+v", s)
		}
		b.none("dead")
		if b.caps.Get {
			i := b.state(b.id(r.ID), engine.Dead, 1)
			if n := len(i.LastError); n > engine.MaxReason || n < engine.MaxReason-3 || !strings.HasPrefix(long, i.LastError[:n-1]) {
				b.Fatalf("%d bytes of the reason kept", n)
			}
		}
	}},
	{"snooze and release count the attempt where it is not given back", func(b *bed) {
		b.need("attempts that are not given back", !b.caps.GiveBack)
		b.push(b.msg("k", dueNow))
		for i, do := range []engine.Action{engine.Release, engine.Snooze, engine.Release} {
			l := b.lease1(0)
			s := b.settle(engine.Settlement{Token: l.Token, Do: do, When: &dueNow})
			if s.State != engine.Ready || l.Attempt != uint32(i+1) {
				b.Fatalf("leased %+v, then %+v", l.Info, s)
			}
		}
	}},
	{"extend moves the deadline", func(b *bed) {
		b.need("Extend", b.caps.Extend)
		m := b.msg("k", dueNow)
		m.TTR = 2 * long
		b.push(m)
		l := b.lease1(3 * b.unit)
		for _, ttr := range []time.Duration{long, 0} {
			want := max(ttr, m.TTR)
			if ttr > 0 {
				want = ttr
			}
			before := b.now()
			s := b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: ttr})
			if s.State != engine.Leased || s.Until.Before(before.Add(want).Truncate(time.Millisecond)) || s.Until.After(b.now().Add(want+time.Second)) {
				b.Fatalf("ttr %v: %+v at %v", ttr, s, before)
			}
		}
		b.pass(4)
		b.none("held for longer")
		b.ack(l.Token)
	}},
	{"in a batch only the bad one fails", func(b *bed) {
		for range 4 {
			b.push(b.msg("", dueNow))
		}
		l := b.leaseN(4, 0)
		s, err := b.e.Settle(b.Context(), []engine.Settlement{
			{Token: l[0].Token, Do: engine.Ack},
			{Token: "no-such-token", Do: engine.Ack},
			{Token: l[1].Token, Do: engine.Bury, Reason: "x"},
			{Token: l[0].Token, Do: engine.Ack},
			{Token: l[2].Token, Do: engine.Retry, When: &dueLater},
			{Token: l[3].Token, Do: engine.Release},
		})
		if err != nil || len(s) != 6 {
			b.Fatalf("%v, %+v", err, s)
		}
		for i, want := range []engine.State{engine.Gone, 0, engine.Dead, 0, engine.Scheduled, engine.Ready} {
			if i == 1 || i == 3 {
				b.is(s[i].Err, engine.ErrLeaseLost)
			} else if s[i].Err != nil || s[i].State != want {
				b.Errorf("%d: %+v, want %v", i, s[i], want)
			}
		}
	}},
}
