package enginetest

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// refusalTests check the hints of errors: they are the same for every engine.
var refusalTests = []test{
	{"a key that is held", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		b.push(b.msg("k", dueLater))
		b.hints(engine.ErrExists, b.tryPush(b.msg("k", dueLater)).Err)
	}},
	{"a message that is leased", func(b *bed) {
		b.need("Keys", b.caps.Keys)
		r := b.push(b.msg("k", dueNow))
		b.lease1(long)
		m := b.msg("k", dueLater)
		m.OnConflict = engine.Replace
		b.hints(engine.ErrLeased, b.tryPush(m).Err)
		if b.caps.Cancel {
			b.hints(engine.ErrLeased, b.cancel(b.key("k")))
		}
		if b.caps.Reschedule {
			_, err := b.e.Reschedule(b.Context(), b.id(r.ID), dueLater)
			b.hints(engine.ErrLeased, err)
		}
		if b.caps.Claim {
			_, err := b.e.(engine.Claimer).Claim(b.Context(), b.key("k"), engine.Want{})
			b.hints(engine.ErrLeased, err)
		}
	}},
	{"a lease that is lost", func(b *bed) {
		b.push(b.msg("", dueNow))
		token := b.lease1(long).Token
		b.ack(token)
		b.hints(engine.ErrLeaseLost, b.trySettle(engine.Settlement{Token: token, Do: engine.Ack}).Err)
	}},
	{"a claim that is too early, or of a paused queue", func(b *bed) {
		c := optional[engine.Claimer](b, "Claim", b.caps.Claim)
		r := b.push(b.msg("", dueLater))
		_, err := c.Claim(b.Context(), b.id(r.ID), engine.Want{})
		b.hints(engine.ErrNotDue, err, hintOf(engine.RefuseNotDue(engine.Ref{}, r.Due)))
		if !b.caps.Pause {
			return
		}
		r = b.push(b.msg("", dueNow))
		b.is(b.e.(engine.Pauser).Pause(b.Context(), b.queue, 0), nil)
		_, err = c.Claim(b.Context(), b.id(r.ID), engine.Want{})
		b.hints(engine.ErrNotDue, err, "the queue is paused")
	}},
	{"a dead message", func(b *bed) {
		b.need("Reschedule", b.caps.Reschedule)
		b.push(b.msg("", dueNow))
		l := b.lease1(long)
		b.settle(engine.Settlement{Token: l.Token, Do: engine.Bury})
		_, err := b.e.Reschedule(b.Context(), b.id(l.ID), dueLater)
		b.hints(engine.ErrNotFound, err, hintOf(engine.RefuseDead("", engine.Ref{})))
	}},
}

func hintOf(err error) string {
	var e *engine.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

// untilOf returns when a retry may help; zero: err does not say.
func untilOf(err error) time.Time {
	var e *engine.Error
	if errors.As(err, &e) {
		return e.Until
	}
	return time.Time{}
}

// hints fails the test unless err wraps the error in what and has the given hint, or else the
// contract's.
func (b *bed) hints(what, err error, hint ...string) {
	b.Helper()
	want := hintOf(engine.Refuse("", engine.Ref{}, what))
	if len(hint) > 0 {
		want = hint[0]
	}
	if !errors.Is(err, what) || hintOf(err) != want {
		b.Errorf("%v\nwant the hint %q", err, want)
	}
}
