package enginetest

import (
	"fmt"

	"github.com/tarryhq/tarry/engine"
)

var cancelTests = []test{
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
