package enginetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

var atomicTests = []test{
	{"all are kept", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		msgs := []engine.Message{b.msg("a", dueNow), b.msg("b", dueNow), b.msg("", dueNow)}
		r, err := p.PushAtomic(b.Context(), msgs)
		if err != nil || len(r) != len(msgs) {
			b.Fatalf("%v, %+v", err, r)
		}
		for _, r := range r {
			if r.Err != nil || r.Outcome != engine.Created {
				b.Fatalf("%+v", r)
			}
		}
		b.leaseN(3, 0)
	}},
	{"the second push of a key meets the first", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		b.need("Keys", b.caps.Keys)
		_, err := p.PushAtomic(b.Context(), []engine.Message{b.msg("a", dueNow), b.msg("a", dueNow)})
		b.is(err, engine.ErrExists)
		b.none("nothing was kept")
	}},
	{"as many and as large as may be", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		msgs := b.asOne(engine.MaxAtomic, engine.MaxAtomicBytes)
		r, err := p.PushAtomic(b.Context(), msgs)
		if err != nil || len(r) != len(msgs) {
			b.Fatalf("%v, %d results", err, len(r))
		}
		for i, r := range r {
			if r.Err != nil || r.Outcome != engine.Created {
				b.Fatalf("%d: %+v", i, r)
			}
		}
		if b.caps.Get {
			for _, i := range []int{0, len(msgs) / 2, len(msgs) - 1} {
				if got := b.get(b.id(r[i].ID)); !bytes.Equal(got.Body, msgs[i].Body) {
					b.Fatalf("%s has %d bytes, not %d", got.Key, len(got.Body), len(msgs[i].Body))
				}
			}
		}
	}},
	{"more, or larger ones, are too large", func(b *bed) {
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		for limit, msgs := range map[string][]engine.Message{
			fmt.Sprint(engine.MaxAtomic):      b.asOne(engine.MaxAtomic+1, 0),
			fmt.Sprint(engine.MaxAtomicBytes): b.asOne(10, engine.MaxAtomicBytes+1),
		} {
			_, err := p.PushAtomic(b.Context(), msgs)
			b.is(err, engine.ErrTooLarge)
			if !strings.Contains(err.Error(), limit) {
				b.Errorf("%v: it does not name %s", err, limit)
			}
		}
		b.none("nothing was kept")
	}},
}

// asOne returns n messages that are due now, with the given total size in bytes.
func (b *bed) asOne(n, size int) []engine.Message {
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = b.msg(fmt.Sprintf("%04d", i), dueNow)
		msgs[i].ContentType = ""
		msgs[i].Body = bytes.Repeat([]byte("x"), max(0, size/n-len(msgs[i].Key)))
		size -= len(msgs[i].Key) + len(msgs[i].Body)
		n--
	}
	return msgs
}
