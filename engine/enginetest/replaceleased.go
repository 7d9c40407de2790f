package enginetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine"
)

// needReplaceLeased skips the test if the engine has no keys, or shows nothing.
func (b *bed) needReplaceLeased() {
	b.Helper()
	b.need("Keys", b.caps.Keys)
	b.need("Get", b.caps.Get)
}

// replacing returns a push with a token.
func (b *bed) replacing(key, token string, due engine.When) engine.Message {
	m := b.msg(key, due)
	m.OnConflict, m.Token, m.Body = engine.Replace, token, []byte("new")
	return m
}

// refused fails the test unless a push with a token gets ErrLeaseLost, and describes nothing.
func (b *bed) refused(key, token string) {
	b.Helper()
	r := b.tryPush(b.replacing(key, token, dueLater))
	b.hints(engine.ErrLeaseLost, r.Err)
	if r.Err = nil; r != (engine.PushResult{}) {
		b.Fatalf("the refusal describes %+v", r)
	}
}

var replaceLeasedTests = []test{
	{"the holder replaces the message, and the lease ends", func(b *bed) {
		b.needReplaceLeased()
		r := b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		m := b.replacing("k", l.Token, dueLater)
		m.ContentType, m.MaxAttempts = "application/x-new", 3
		got := b.push(m)
		if got.Outcome != engine.Replaced || got.ID != r.ID || got.State != engine.Scheduled || !got.Due.After(r.Due) {
			b.Fatalf("%+v", got)
		}
		i := b.state(b.id(r.ID), engine.Scheduled, 0)
		if problem := sameContent(i.Content, m.Content); problem != "" || i.MaxAttempts != 3 || len(i.Failures) > 0 || !i.Due.Equal(got.Due) {
			b.Fatalf("%s: %+v", problem, i)
		}
		b.lost(l.Token)
		b.refused("k", l.Token)
		b.none("it is due later")
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 1, 0, 0, 0)
		}
	}},
	{"one that is due at once is leased again", func(b *bed) {
		b.needReplaceLeased()
		b.push(b.msg("k", dueNow))
		first := b.lease1(0)
		if r := b.push(b.replacing("k", first.Token, dueNow)); r.State != engine.Ready {
			b.Fatalf("%+v", r)
		}
		again := b.lease1(0)
		if again.ID != first.ID || again.Attempt != 1 || string(again.Body) != "new" {
			b.Fatalf("%+v", again)
		}
		b.refused("k", first.Token)
		b.push(b.replacing("k", again.Token, dueNow))
		b.ack(b.lease1(0).Token)
	}},
	{"a lapsed lease replaces until something else is decided", func(b *bed) {
		b.needReplaceLeased()
		b.push(b.msg("k", dueNow))
		l := b.leaseAs("w", b.unit)
		b.pass(1)
		b.push(b.replacing("k", l.Token, dueLater))
		i := b.state(b.key("k"), engine.Scheduled, 0)
		if b.caps.Failures {
			b.haveFailed(i, "1 w "+engine.Lapsed)
		}
		b.push(b.msg("l", dueNow))
		old := b.lease1(b.unit)
		b.pass(1)
		b.lease1(long)
		b.refused("l", old.Token)
		b.state(b.key("l"), engine.Leased, 2)
	}},
	{"a message that lapsed dead is not replaced", func(b *bed) {
		b.needReplaceLeased()
		l := b.spent("k")
		b.refused("k", l.Token)
		b.state(b.id(l.ID), engine.Dead, 1)
		if b.caps.Count {
			b.counts(b.e.(engine.Counter), 0, 0, 0, 1)
		}
	}},
	{"a lease that was settled is lost", func(b *bed) {
		b.needReplaceLeased()
		for do := engine.Ack; do <= engine.Bury; do++ {
			key := do.String()
			b.push(b.msg(key, dueNow))
			l := b.lease1(0)
			b.settle(engine.Settlement{Token: l.Token, Do: do, When: &dueLater})
			b.refused(key, l.Token)
			if do == engine.Release {
				b.ack(b.lease1(0).Token)
			}
		}
	}},
	{"no token but the newest of that key will do", func(b *bed) {
		b.needReplaceLeased()
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		b.push(b.msg("other", dueLater))
		b.push(b.msg("", dueNow))
		nameless := b.lease1(0)
		zero := strings.Repeat("A", len(l.Token)) // what nothing decodes to
		changed := []byte(l.Token)
		changed[len(changed)/2] ^= 1
		elsewhere := []byte(l.Token) // it begins with the queue
		if elsewhere[0]++; l.Token[0] != 'A' {
			elsewhere[0] = 'A'
		}
		for key, tokens := range map[string][]string{
			"k":     {nameless.Token, "x", strings.Repeat("x", engine.MaxTokenBytes), string(changed), string(elsewhere), l.Token + "A"},
			"other": {l.Token, nameless.Token, zero},
			"none":  {l.Token, nameless.Token, zero},
		} {
			for _, token := range tokens {
				b.refused(key, token)
			}
		}
		m := b.replacing("k", l.Token, dueNow)
		m.Queue = b.queueName("elsewhere")
		b.hints(engine.ErrLeaseLost, b.tryPush(m).Err)
		b.absent(b.key("none"))
		b.state(b.key("other"), engine.Scheduled, 0)
		b.ack(nameless.Token)
		b.ack(l.Token)
	}},
	{"what took the key after it is left alone", func(b *bed) {
		b.needReplaceLeased()
		b.needRemember()
		l := b.spent("k")
		second := b.push(b.msg("k", dueLater))
		b.refused("k", l.Token)
		b.state(b.id(second.ID), engine.Scheduled, 0)
		m := b.msg("r", dueNow)
		m.Remember = long
		r := b.push(m)
		last := b.lease1(0)
		b.ack(last.Token)
		b.refused("r", last.Token)
		b.finished(r, "r", engine.Acked)
	}},
	{"a claim of what is not due gives such a token", func(b *bed) {
		b.needReplaceLeased()
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		b.need("ClaimIf", b.caps.ClaimIf)
		b.push(b.msg("k", dueLater))
		ref := b.key("k")
		ref.IfState = engine.Scheduled
		l, err := c.Claim(b.Context(), ref, engine.Want{TTR: long})
		b.is(err, nil)
		b.push(b.replacing("k", l.Token, dueLater))
		b.state(b.key("k"), engine.Scheduled, 0)
		b.lost(l.Token)
	}},
	{"in one call each item acts in order", func(b *bed) {
		b.needReplaceLeased()
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		keep := b.msg("k", dueNow)
		keep.OnConflict = engine.Keep
		r, err := b.e.Push(b.Context(), []engine.Message{
			b.replacing("k", l.Token, dueLater), b.replacing("k", l.Token, dueNow), b.msg("new", dueLater), keep,
		})
		b.is(err, nil)
		b.is(r[0].Err, nil)
		b.is(r[1].Err, engine.ErrLeaseLost)
		b.is(r[2].Err, nil)
		if b.is(r[3].Err, nil); r[3].Outcome != engine.Kept || r[3].State != engine.Scheduled {
			b.Fatalf("%+v", r[3])
		}
	}},
	{"an atomic push with a lost lease changes nothing", func(b *bed) {
		b.needReplaceLeased()
		p := optional[engine.AtomicPusher](b, "Atomic", b.caps.Atomic)
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		for _, second := range []engine.Message{b.replacing("k", l.Token, dueNow), b.replacing("none", "x", dueNow)} {
			_, err := p.PushAtomic(b.Context(), []engine.Message{b.replacing("k", l.Token, dueLater), second, b.msg("new", dueNow)})
			b.hints(engine.ErrLeaseLost, err)
			b.state(b.key("k"), engine.Leased, 1)
			b.absent(b.key("new"))
		}
		r, err := p.PushAtomic(b.Context(), []engine.Message{b.msg("new", dueNow), b.replacing("k", l.Token, dueLater)})
		if b.is(err, nil); r[1].Outcome != engine.Replaced || r[1].State != engine.Scheduled {
			b.Fatalf("%+v", r)
		}
		b.lost(l.Token)
		if next := b.lease1(0); next.Key != "new" {
			b.Fatalf("leased %+v", next)
		}
		b.state(b.key("k"), engine.Scheduled, 0)
	}},
	{"it frees a place in flight, and a full queue takes it", func(b *bed) {
		b.needReplaceLeased()
		b.needWhole()
		b.configure(engine.Settings{InFlight: 1, MaxPending: 2})
		b.push(b.msg("k", dueNow))
		l := b.lease1(0)
		b.push(b.msg("next", dueNow))
		b.heldBack(b.lease(1, 0), 0)
		b.hinted("replace by token", func() { b.push(b.replacing("k", l.Token, dueLater)) })
		if next := b.lease1(0); next.Key != "next" {
			b.Fatalf("leased %+v", next)
		}
	}},
	{"it outlasts the process", func(b *bed) {
		b.needReplaceLeased()
		b.need("to reopen", b.h.Reopen != nil)
		b.push(b.msg("k", dueNow))
		l := b.leaseRemote()
		b.reopen()
		r := b.push(b.replacing("k", l.Token, dueLater))
		b.reopen()
		if i := b.state(b.key("k"), engine.Scheduled, 0); i.ID != r.ID || string(i.Body) != "new" || !i.Due.Equal(r.Due) {
			b.Fatalf("%+v", i)
		}
		b.lost(l.Token)
	}},
	{"against a settlement: one of them wins", func(b *bed) {
		b.needReplaceLeased()
		for range rounds {
			b.push(b.msg("k", dueNow))
			l := b.lease1(0)
			var acked error
			var r engine.PushResult
			race(func() { acked = b.settled(engine.Settlement{Token: l.Token, Do: engine.Ack}) },
				func() { r = b.pushed(b.replacing("k", l.Token, dueNow)) })
			b.oneOf(r.Err, acked, engine.ErrLeaseLost)
			if r.Err == nil {
				b.ack(b.lease1(0).Token)
			}
			b.none("acked, before or after")
		}
	}},
	{"against itself: one of them wins", func(b *bed) {
		b.needReplaceLeased()
		for range rounds {
			b.push(b.msg("k", dueNow))
			l := b.lease1(0)
			var won atomic.Int32
			push := func() {
				switch r := b.pushed(b.replacing("k", l.Token, dueNow)); {
				case r.Err == nil:
					won.Add(1)
				case !errors.Is(r.Err, engine.ErrLeaseLost):
					b.Errorf("push: %+v", r)
				}
			}
			race(push, push, push)
			if won.Load() != 1 {
				b.Fatalf("%d of 3 succeeded", won.Load())
			}
			b.ack(b.lease1(0).Token)
		}
	}},
	{"after a lapse: a new lease or it, not both", func(b *bed) {
		b.needReplaceLeased()
		b.laps(func(old engine.Lease) error {
			return b.pushed(b.replacing(old.Key, old.Token, dueLater)).Err
		}, engine.ErrLeaseLost)
	}},
	{"after a lapse, against a cancel: nothing is left", func(b *bed) {
		b.needReplaceLeased()
		b.need("Cancel", b.caps.Cancel)
		for i := range rounds {
			b.push(b.msg(fmt.Sprint(i), dueNow))
		}
		old := b.lapsed(rounds)
		race(func() {
			for id := range old {
				if err := b.cancelled(b.id(id)); err != nil {
					b.Errorf("cancel: %v", err)
				}
			}
		}, func() {
			for _, l := range old {
				r := b.pushed(b.replacing(l.Key, l.Token, dueLater))
				if r.Err != nil && !errors.Is(r.Err, engine.ErrLeaseLost) {
					b.Errorf("push: %+v", r)
				}
			}
		})
		for _, l := range old {
			b.absent(b.key(l.Key))
		}
	}},
}

// oneOf fails the test unless one of two calls succeeded, and the other got refused.
func (b *bed) oneOf(first, second, refused error) {
	b.Helper()
	if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), refused) {
		b.Fatalf("%v, and %v", first, second)
	}
}
