package enginetest

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

var misuseTests = []test{
	{"empty calls do nothing", func(b *bed) {
		if r, err := b.e.Push(b.Context(), nil); err != nil || len(r) != 0 {
			b.Errorf("push: %v, %+v", err, r)
		}
		if g, err := b.e.Lease(b.Context(), nil); err != nil || len(g.Queues) != 0 || g.Now.IsZero() {
			b.Errorf("lease: %v, %+v", err, g)
		}
		if s, err := b.e.Settle(b.Context(), nil); err != nil || len(s) != 0 {
			b.Errorf("settle: %v, %+v", err, s)
		}
		if b.caps.Cancel {
			if errs, err := b.e.Cancel(b.Context(), nil); err != nil || len(errs) != 0 {
				b.Errorf("cancel: %v, %+v", err, errs)
			}
		}
	}},
	{"tokens that are none, or nearly one, get lease_lost", func(b *bed) {
		b.push(b.msg("k", dueNow))
		real := b.lease1(0).Token
		other := byte('A')
		if real[len(real)-1] == other {
			other = 'B'
		}
		for _, token := range []string{
			"", "x", "0", "-", "%00", "\x00", "é", "a b", strings.Repeat("x", 128), strings.Repeat("9", 5000),
			real[:len(real)-1], real + "x", "x" + real, real[:len(real)-1] + string(other), real[len(real)/2:],
		} {
			for do := engine.Ack; do <= engine.Extend; do++ {
				if do == engine.Extend && !b.caps.Extend {
					continue
				}
				if s := b.trySettle(engine.Settlement{Token: token, Do: do, When: &dueNow}); !errors.Is(s.Err, engine.ErrLeaseLost) {
					b.Errorf("token %q, %v: %+v", token, do, s)
				}
			}
		}
		b.none("still held")
		b.ack(real)
	}},
	{"an action that is none is refused and the lease holds", func(b *bed) {
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		for _, do := range []engine.Action{0, engine.Extend + 1, 255} {
			if s := b.trySettle(engine.Settlement{Token: l.Token, Do: do}); s.Err == nil {
				b.Errorf("%v: %+v", do, s)
			}
		}
		b.ack(l.Token)
	}},
	{"a ref that names nothing is not found, or invalid", func(b *bed) {
		b.push(b.msg("", dueNow))
		ref := engine.Ref{Queue: b.queue}
		refused := func(err error) bool { return errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrInvalid) }
		if _, err := b.e.Get(b.Context(), ref); b.caps.Get && !refused(err) {
			b.Errorf("get: %v", err)
		}
		if b.caps.Cancel && !refused(b.cancel(ref)) {
			b.Error("cancel")
		}
		if _, err := b.e.Reschedule(b.Context(), ref, dueNow); b.caps.Reschedule && !refused(err) {
			b.Errorf("reschedule: %v", err)
		}
		b.lease1(0)
	}},
	{"a context that has ended ends the call and nothing else", func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		r := b.push(b.msg("k", dueNow))
		for what, err := range b.everyCall(ctx, b.id(r.ID)) {
			if err != nil && !errors.Is(err, context.Canceled) {
				b.Errorf("%s: %v", what, err)
			}
		}
		if b.caps.Pause {
			b.is(b.e.(engine.Pauser).Resume(b.Context(), b.queue), nil)
		}
		if b.caps.Settings {
			b.configure(engine.Settings{})
		}
		b.lease1(0)
	}},
	{"settings of a queue that holds nothing", func(b *bed) {
		c := optional[engine.Configurer](b, "Settings", b.caps.Settings)
		_, err := c.Configure(b.Context(), b.queue, engine.Settings{DeadMax: 1}, "1")
		b.is(err, engine.ErrStale)
		b.configuredNever()
		b.configure(engine.Settings{DeadMax: 1, DeadKeep: 1, MaxPending: 1, InFlight: 1, Rate: 1, Burst: 1})
		b.none("there is nothing")
		if b.caps.Count {
			if q := b.counts(b.e.(engine.Counter), 0, 0, 0, 0); q.Finished != 0 || q.Paused || q.Queue != b.queue {
				b.Errorf("%+v", q)
			}
		}
	}},
	{"what is not supported says so", func(b *bed) {
		unsupported := func(what string, has bool, err error) {
			if !has && !errors.Is(err, engine.ErrUnsupported) {
				b.Errorf("%s: %v", what, err)
			}
		}
		ref := b.id(1 << 62)
		_, err := b.e.Get(b.Context(), ref)
		unsupported("get", b.caps.Get, err)
		_, err = b.e.Reschedule(b.Context(), ref, dueNow)
		unsupported("reschedule", b.caps.Reschedule, err)
		errs, err := b.e.Cancel(b.Context(), []engine.Ref{ref})
		unsupported("cancel", b.caps.Cancel, errors.Join(append(errs, err)...))
		if !b.caps.Keys {
			m := b.msg("", dueNow)
			m.Key = "k"
			unsupported("push with a key", false, b.tryPush(m).Err)
		}
	}},
	{"capabilities do not change, and make sense", func(b *bed) {
		c := b.e.Capabilities()
		if !reflect.DeepEqual(c, b.caps) || c.Name == "" || c.Precision <= 0 || c.Recheck < 0 {
			b.Fatalf("%+v, then %+v", b.caps, c)
		}
	}},
}
