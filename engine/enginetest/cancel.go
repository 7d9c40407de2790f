package enginetest

import (
	"fmt"

	"github.com/tarryhq/tarry/engine"
)

var cancelTests = []test{
	{"an id of another queue is not found", func(b *bed) {
		b.need("Cancel", b.caps.Cancel)
		r, other := b.push(b.msg("k", dueNow)), b.msg("k", dueNow)
		other.Queue = queueName() // it exists, so that the id is looked up
		b.push(other)
		ref := engine.Ref{Queue: other.Queue, ID: r.ID}
		b.is(b.cancel(ref), engine.ErrNotFound)
		if b.caps.Reschedule {
			_, err := b.e.Reschedule(b.Context(), ref, dueLater)
			b.is(err, engine.ErrNotFound)
		}
		if b.caps.Claim {
			_, err := b.e.(engine.Claimer).Claim(b.Context(), ref, engine.Want{})
			b.is(err, engine.ErrNotFound)
		}
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
