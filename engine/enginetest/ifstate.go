package enginetest

import (
	"errors"

	"github.com/tarryhq/tarry/engine"
)

// in returns ref, restricted to messages in that state.
func in(ref engine.Ref, s engine.State) engine.Ref {
	ref.IfState = s
	return ref
}

var ifStateTests = []test{
	{"cancel and reschedule of one in another state are stale", func(b *bed) {
		b.need("IfState", b.caps.IfState)
		waits := b.push(b.msg("waits", dueLater))
		b.push(b.msg("held", dueNow))
		held := b.lease1(0)
		b.push(b.msg("buried", dueNow))
		buried := b.lease1(0)
		b.bury(buried.Token, "x")
		due := b.push(b.msg("due", dueNow))
		for state, id := range map[engine.State]engine.ID{
			engine.Scheduled: waits.ID, engine.Ready: due.ID, engine.Leased: held.ID, engine.Dead: buried.ID,
		} {
			for want := engine.Scheduled; want <= engine.Dead; want++ {
				if want == state {
					continue
				}
				if b.caps.Cancel {
					err := b.cancel(in(b.id(id), want))
					b.hints(engine.ErrStale, err, hintOf(engine.RefuseState("", in(engine.Ref{}, want), state)))
				}
				if b.caps.Reschedule && state != engine.Dead { // Reschedule does not find dead messages
					_, err := b.e.Reschedule(b.Context(), in(b.id(id), want), dueNow)
					b.is(err, engine.ErrStale)
				}
			}
			if b.caps.Get {
				if i := b.get(b.id(id)); i.State != state {
					b.Fatalf("%v became %v", state, i.State)
				}
			}
		}
		b.ack(held.Token)
	}},
	{"in a batch each is looked at for itself", func(b *bed) {
		b.need("IfState", b.caps.IfState)
		b.need("Cancel", b.caps.Cancel)
		var refs []engine.Ref
		for i := range 20 {
			due := []engine.When{dueNow, dueLater}[i%2]
			refs = append(refs, in(b.id(b.push(b.msg("", due)).ID), engine.Scheduled))
		}
		errs, err := b.e.Cancel(b.Context(), refs)
		if err != nil || len(errs) != len(refs) {
			b.Fatalf("%v, %d results", err, len(errs))
		}
		for i, err := range errs {
			if i%2 == 0 && !errors.Is(err, engine.ErrStale) || i%2 == 1 && err != nil {
				b.Errorf("%d: %v", i, err)
			}
		}
		b.leaseN(10, 0)
	}},
	{"get asks for no state", func(b *bed) {
		b.need("IfState", b.caps.IfState)
		b.need("Get", b.caps.Get)
		r := b.push(b.msg("k", dueNow))
		b.get(in(b.id(r.ID), engine.Dead))
	}},
}
