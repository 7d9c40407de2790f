package enginetest

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

var watchTests = []test{
	{"a push of the least due is hinted", func(b *bed) {
		b.push(b.msg("", dueLater))
		b.hinted("push", func() { b.push(b.msg("", engine.When{In: time.Hour})) })
		b.hinted("push", func() { b.push(b.msg("", dueNow)) })
	}},
	{"what a settlement brings back is hinted", func(b *bed) {
		b.push(b.msg("", dueNow))
		l := b.lease1(0)
		b.hinted("release", func() { b.settle(engine.Settlement{Token: l.Token, Do: engine.Release}) })
		l = b.lease1(0)
		b.hinted("snooze", func() {
			b.settle(engine.Settlement{Token: l.Token, Do: engine.Snooze, When: &engine.When{In: time.Hour}})
		})
	}},
	{"a reschedule to an earlier due is hinted", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		r := b.push(b.msg("", dueLater))
		b.hinted("reschedule", func() { b.reschedule(b.id(r.ID), dueNow) })
	}},
	{"a rearm to an earlier due is hinted", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.push(b.msg("k", dueLater))
		b.hinted("rearm", func() { b.pushAs(engine.Rearm, "k", dueNow) })
	}},
	{"a resume is hinted", func(b *bed) {
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		b.push(b.msg("", dueNow))
		b.is(p.Pause(b.Context(), b.queue, 0), nil)
		b.hinted("resume", func() { b.is(p.Resume(b.Context(), b.queue), nil) })
	}},
	{"a resume is hinted when there are only leases that will lapse", func(b *bed) {
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		b.push(b.msg("", dueNow))
		b.lease1(long)
		b.is(p.Pause(b.Context(), b.queue, 0), nil)
		b.hinted("resume", func() { b.is(p.Resume(b.Context(), b.queue), nil) })
	}},
	{"what a late settlement brings back from the dead is hinted", func(b *bed) {
		b.need("GiveBack", b.caps.GiveBack)
		for _, s := range []engine.Settlement{{Do: engine.Release}, {Do: engine.Snooze, When: &engine.When{In: time.Hour}}} {
			s.Token = b.spent("").Token
			b.hinted(s.Do.String(), func() { b.settle(s) })
		}
	}},
	{"a shorter pause is hinted", func(b *bed) {
		p := optional[engine.Pauser](b, "Pause", b.caps.Pause)
		b.push(b.msg("", dueNow))
		b.is(p.Pause(b.Context(), b.queue, 0), nil)
		b.hinted("pause", func() { b.is(p.Pause(b.Context(), b.queue, b.unit), nil) })
	}},
	{"a redrive is hinted", func(b *bed) {
		optional[engine.Redriver](b, "Redrive", b.caps.Redrive)
		b.deadOnes("k")
		b.hinted("redrive", func() { b.redrive(0) })
	}},
	{"extend to a nearer deadline is hinted", func(b *bed) {
		b.need("Extend", b.caps.Extend)
		b.push(b.msg("", dueNow))
		l := b.lease1(long)
		b.hinted("extend", func() { b.settle(engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: b.unit}) })
	}},
	{"many may watch, and each may stop, twice", func(b *bed) {
		hints := make(chan string, 1000)
		stop := b.e.Watch(func(string) {
			select {
			case hints <- "":
			default:
			}
		})
		stop2 := b.e.Watch(func(string) {})
		stop2()
		stop2()
		b.hinted("push", func() { b.push(b.msg("", dueNow)) })
		stop()
		b.push(b.msg("", dueNow))
	}},
	{"LeaseWait is answered by a push", func(b *bed) {
		w := optional[engine.LeaseWaiter](b, "LeaseWait", b.caps.LeaseWait)
		type answer struct {
			got engine.Waited
			err error
		}
		got := make(chan answer, 1)
		go func() {
			w, err := w.LeaseWait(b.Context(), engine.Wait{Queues: []string{b.queue}, Max: 1, For: patience, TTR: long})
			got <- answer{w, err}
		}()
		r := b.push(b.msg("", dueNow))
		a := <-got
		if a.err != nil || len(a.got.Messages) != 1 || a.got.Messages[0].ID != r.ID {
			b.Fatalf("%v, %+v", a.err, a.got)
		}
	}},
	{"LeaseWait without a message ends in time, empty", func(b *bed) {
		w := optional[engine.LeaseWaiter](b, "LeaseWait", b.caps.LeaseWait)
		got, err := w.LeaseWait(b.Context(), engine.Wait{Queues: []string{b.queue}, Max: 1, For: 20 * time.Millisecond})
		if err != nil || len(got.Messages) != 0 || got.Now.IsZero() {
			b.Fatalf("%v, %+v", err, got)
		}
	}},
	{"LeaseWait that is given up leaves nothing leased", func(b *bed) {
		w := optional[engine.LeaseWaiter](b, "LeaseWait", b.caps.LeaseWait)
		b.need("Get", b.caps.Get)
		for i := range 50 {
			ctx, giveUp := context.WithCancel(b.Context())
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				got, err := w.LeaseWait(ctx, engine.Wait{Queues: []string{b.queue}, Max: 1, For: patience, TTR: long})
				if err != nil {
					return
				}
				for _, l := range got.Messages {
					b.settle(engine.Settlement{Token: l.Token, Do: engine.Release})
				}
			}()
			if i%2 == 0 {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond) // it may or may not be waiting by then
			}
			r := b.push(b.msg("", dueNow))
			giveUp()
			<-gone
			b.soon("what was leased to be given back", func() bool {
				m := b.get(b.id(r.ID))
				return m.State == engine.Ready && (m.Attempt == 0 || !b.caps.GiveBack)
			})
			b.ack(b.lease1(0).Token)
		}
	}},
}

// hinted fails the test unless do makes the engine hint at the bed's queue, after a Lease
// that said to return much later. Hints of other processes may be lost (see
// Capabilities.Recheck), but those of the engine's own calls never are.
func (b *bed) hinted(what string, do func()) {
	b.Helper()
	hints := make(chan string, 1000)
	stop := b.e.Watch(func(queue string) {
		select {
		case hints <- queue:
		default: // full: a hint has come
		}
	})
	defer stop()
	b.soon("nothing to be due", func() bool {
		g, now := b.leaseAt(1, 0)
		for _, l := range g.Messages {
			b.ack(l.Token)
		}
		return !g.More && (g.NextDue.IsZero() || g.NextDue.After(now.Add(b.unit/2)))
	})
	for len(hints) > 0 {
		<-hints
	}
	do()
	timeout := time.After(patience)
	for {
		select {
		case queue := <-hints:
			if queue == b.queue {
				return
			}
		case <-timeout:
			b.Fatalf("%s: no hint", what)
		}
	}
}
