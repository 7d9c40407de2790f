package enginetest

import (
	"fmt"

	"github.com/tarryhq/tarry/engine"
)

var cancelTests = []test{
	{"scheduled and ready messages go, by id and by key", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		for _, due := range []engine.When{dueNow, dueLater} {
			r := b.push(b.msg("k", due))
			b.is(b.cancel(b.id(r.ID)), nil)
			b.is(b.cancel(b.id(r.ID)), engine.ErrNotFound)
			if b.caps.Keys {
				b.push(b.msg("k", due))
				b.is(b.cancel(b.key("k")), nil)
				b.is(b.cancel(b.key("k")), engine.ErrNotFound)
			}
			b.none("cancelled")
		}
	}},
	{"a leased message comes too late", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		b.is(b.cancel(b.id(r.ID)), engine.ErrLeased)
		if b.caps.Keys {
			b.is(b.cancel(b.key("k")), engine.ErrLeased)
		}
		b.ack(l.Token)
		b.is(b.cancel(b.id(r.ID)), engine.ErrNotFound)
	}},
	{"a dead message goes by id alone", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		r := b.push(b.msg("k", dueNow))
		b.bury(b.lease1(0).Token, "x")
		if b.caps.Keys {
			b.is(b.cancel(b.key("k")), engine.ErrNotFound)
		}
		b.is(b.cancel(b.id(r.ID)), nil)
		b.is(b.cancel(b.id(r.ID)), engine.ErrNotFound)
	}},
	{"an id of another queue is not found", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		r := b.push(b.msg("k", dueNow))
		b.is(b.cancel(engine.Ref{Queue: queueName(), ID: r.ID}), engine.ErrNotFound)
		b.lease1(0)
	}},
	{"in a batch each answers for itself, in order", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		held := b.push(b.msg("held", dueNow))
		b.lease1(0)
		var refs []engine.Ref
		for i := range 20 {
			refs = append(refs, b.id(b.push(b.msg(fmt.Sprint(i), dueLater)).ID))
		}
		refs = append(refs, refs[0], b.id(held.ID), b.id(1<<62))
		errs, err := b.e.Cancel(b.Context(), refs)
		if err != nil || len(errs) != len(refs) {
			b.Fatalf("%v, %d results", err, len(errs))
		}
		for i, err := range errs[:20] {
			if err != nil {
				b.Errorf("%d: %v", i, err)
			}
		}
		b.is(errs[20], engine.ErrNotFound)
		b.is(errs[21], engine.ErrLeased)
		b.is(errs[22], engine.ErrNotFound)
	}},
	{"a cancelled message does not fall due", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		r := b.push(b.msg("k", b.in(1)))
		stays := b.push(b.msg("stays", b.in(1)))
		b.is(b.cancel(b.id(r.ID)), nil)
		b.pass(2)
		if got := b.lease1(0); got.ID != stays.ID {
			b.Fatalf("leased %+v", got)
		}
		b.none("cancelled")
	}},
}

var rescheduleTests = []test{
	{"forwards and back", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		r := b.push(b.msg("k", dueNow))
		i := b.reschedule(b.id(r.ID), dueLater)
		if i.ID != r.ID || i.State != engine.Scheduled || !i.Due.After(r.Due) {
			b.Fatalf("%+v", i)
		}
		b.none("moved away")
		if i = b.reschedule(b.id(r.ID), dueNow); i.State != engine.Ready {
			b.Fatalf("%+v", i)
		}
		if l := b.lease1(0); l.ID != r.ID || !l.Due.Equal(i.Due) {
			b.Fatalf("%+v", l)
		}
	}},
	{"by key", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		b.need("Keys", b.caps.Keys)
		r := b.push(b.msg("k", dueLater))
		if i := b.reschedule(b.key("k"), b.in(1)); i.ID != r.ID || i.Key != "k" || i.Queue != b.queue {
			b.Fatalf("%+v", i)
		}
		b.pass(1)
		b.lease1(0)
	}},
	{"the attempt becomes 0", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		r := b.push(b.msg("k", dueNow))
		b.settle(engine.Settlement{Token: b.lease1(0).Token, Do: engine.Retry})
		if i := b.reschedule(b.id(r.ID), dueNow); i.Attempt != 0 {
			b.Fatalf("%+v", i)
		}
		if l := b.lease1(0); l.Attempt != 1 {
			b.Fatalf("%+v", l)
		}
	}},
	{"the expiry moves along", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		b.need("Get", b.caps.Get)
		b.need("Expiry", b.caps.Expiry)
		m := b.msg("k", dueNow)
		m.ExpireAfter = long
		r := b.push(m)
		b.reschedule(b.id(r.ID), dueLater)
		if i := b.get(b.id(r.ID)); !i.Expires.Equal(i.Due.Add(long)) {
			b.Fatalf("due %v, expires %v", i.Due, i.Expires)
		}
	}},
	{"leased, dead and unknown ones are refused", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		_, err := b.e.Reschedule(b.Context(), b.id(r.ID), dueLater)
		b.is(err, engine.ErrLeased)
		b.bury(l.Token, "x")
		for _, ref := range []engine.Ref{b.id(r.ID), b.id(1 << 62), {Queue: queueName(), ID: r.ID}, b.key("k"), b.key("unknown")} {
			if ref.ID == 0 && !b.caps.Keys {
				continue
			}
			_, err = b.e.Reschedule(b.Context(), ref, dueLater)
			b.is(err, engine.ErrNotFound)
		}
	}},
}

// reschedule moves a message, which must succeed.
func (b *bed) reschedule(ref engine.Ref, due engine.When) engine.Info {
	b.Helper()
	i, err := b.e.Reschedule(b.Context(), ref, due)
	if err != nil {
		b.Fatalf("reschedule %+v: %v", ref, err)
	}
	return i
}
