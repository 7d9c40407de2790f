package rabbitengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Settle ends leases. A message that is retried or snoozed is published again, then
// acknowledged once the broker has confirmed that; a disconnect in between may duplicate it.
// The broker does not answer acks: if the connection ends right after an ack, the message
// may come again.
func (e *Engine) Settle(ctx context.Context, s []engine.Settlement) ([]engine.Settled, error) {
	if err := e.gate.Enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	return e.settle(ctx, s)
}

// settling is a settlement in progress.
type settling struct {
	l    *item
	into *engine.Settled
	info engine.Info // the message to publish; unused for an ack
	dead bool
	post bool
}

func (e *Engine) settle(ctx context.Context, settlements []engine.Settlement) ([]engine.Settled, error) {
	out := make([]engine.Settled, len(settlements))
	var under []settling
	e.mu.Lock()
	e.lapse()
	now := time.Now()
	for i := range settlements {
		if out[i].Err = settlements[i].Check(); out[i].Err != nil {
			continue
		}
		l := e.leaseOf(settlements[i].Token)
		if l == nil {
			t, _ := codec.ParseToken(settlements[i].Token)
			out[i].Err = engine.Refuse("settle", engine.Ref{ID: t.ID}, engine.ErrLeaseLost)
			continue
		}
		if settlements[i].Do == engine.Extend {
			out[i] = e.extend(l, settlements[i].TTR)
			out[i].Queue = l.q.name
			continue
		}
		x := settling{l: l, into: &out[i], info: l.Info}
		e.decide(&x, &settlements[i], now)
		e.release(l)
		under = append(under, x)
	}
	e.mu.Unlock()
	e.carryOut(ctx, under)
	return out, nil
}

// leaseOf returns the lease of a token, active or lapsed; nil if it is lost. Called with
// Engine.mu held.
func (e *Engine) leaseOf(text string) *item {
	t, ok := codec.ParseToken(text)
	l := e.leases[t.Nonce]
	if !ok || l == nil || l.ID != t.ID || t.Queue != 0 || l.ch.IsClosed() {
		return nil
	}
	return l
}

// extend moves a deadline, even of a lapsed lease. Called with Engine.mu held.
func (e *Engine) extend(l *item, ttr time.Duration) engine.Settled {
	e.release(l)
	l.Died = time.Time{}
	e.hold(l, l.until(ttr))
	e.watchers.Hint(l.q.name)
	return engine.Settled{State: engine.Leased, Until: l.deadline}
}

// release removes a lease and its item from this process. Called with Engine.mu held.
func (e *Engine) release(l *item) {
	delete(e.leases, l.nonce)
	if _, active := e.ends.Cancel(l.end); active {
		l.q.leased--
		return
	}
	is := func(x *item) bool { return x == l }
	l.q.here, l.q.spent = slices.DeleteFunc(l.q.here, is), slices.DeleteFunc(l.q.spent, is)
}

// decide determines the result of a settlement.
func (e *Engine) decide(x *settling, s *engine.Settlement, now time.Time) {
	m := &x.info
	m.Died = time.Time{}
	at := func(w engine.When) {
		x.post = true
		if d := delayTo(w, now); d > 0 && (len(e.cfg.Delays) > 0 || d > e.caps.MaxDelay) {
			_, d = x.l.session.layout.to(m.Queue, d)
			w = engine.When{In: d}
		}
		m.Due = time.UnixMilli(w.Resolve(now)).UTC()
		*x.into = engine.Settled{State: engine.Scheduled, Until: m.Due}
		if !m.Due.After(now) {
			x.into.State = engine.Ready
		}
	}
	bury := func() {
		x.post, x.dead = true, true
		m.Died = now.UTC().Truncate(time.Millisecond)
		*x.into = engine.Settled{State: engine.Dead}
	}
	switch s.Do {
	case engine.Ack:
		*x.into = engine.Settled{State: engine.Gone}
	case engine.Snooze:
		m.Attempt--
		at(*s.When)
	case engine.Release:
		m.Attempt--
		x.post = true
		*x.into = engine.Settled{State: engine.Ready, Until: m.Due}
	case engine.Bury:
		m.LastError = s.KeptReason()
		bury()
	case engine.Retry:
		m.LastError = s.KeptReason()
		switch {
		case m.Attempt >= m.MaxAttempts:
			bury()
		case s.When != nil:
			at(*s.When)
		default:
			at(engine.When{In: m.RetryDelay(m.Attempt)})
		}
	}
}

// carryOut publishes messages that come again, then acknowledges. All leases are of one
// session: they end with it.
func (e *Engine) carryOut(ctx context.Context, under []settling) {
	if len(under) == 0 {
		return
	}
	p := posting{op: "settle", s: under[0].l.session}
	for i := range under {
		x := &under[i]
		switch {
		case !x.post:
			p.skip()
		case x.dead:
			p.bury(ctx, &x.info)
		default:
			p.put(ctx, &x.info)
		}
	}
	for i, err := range p.confirm(ctx) {
		x := &under[i]
		switch {
		case err != nil:
			*x.into = engine.Settled{Err: err}
			e.restore(x.l)
		case x.l.ack() != nil:
			// The message comes again; if it was also published again, it comes twice.
			*x.into = engine.Settled{Err: engine.Refuse("settle", engine.Ref{Queue: x.info.Queue, ID: x.info.ID}, engine.ErrLeaseLost)}
		case x.post && !x.dead:
			e.watchers.Hint(x.info.Queue)
		}
		x.into.Queue = x.info.Queue
	}
}

// restore reinstates a lease whose settlement failed, so that it can be tried again.
func (e *Engine) restore(l *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.session == e.session && !l.ch.IsClosed() {
		e.hold(l, l.deadline)
	}
}

// delayTo returns the time from now until w.
func delayTo(w engine.When, now time.Time) time.Duration {
	if w.At.IsZero() {
		return w.In
	}
	return w.At.Sub(now)
}
