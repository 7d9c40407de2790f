package httpengine

import (
	"context"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Lease asks for each want in requests of its own.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	g := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	if len(wants) == 0 {
		g.Now = time.Now()
		return g, e.idle(ctx, "lease")
	}
	for i, w := range wants {
		got, now, err := e.leaseNow(ctx, w)
		if err != nil {
			if len(wants) == 1 || ctx.Err() != nil {
				e.giveBack(ctx, append(g.Queues[:i:i], got))
				return engine.Grant{}, err
			}
			got.Err = err
		}
		g.Queues[i] = got
		if now.After(g.Now) {
			g.Now = now
		}
	}
	if g.Now.IsZero() {
		return engine.Grant{}, g.Queues[0].Err // not one could be asked
	}
	ahead(&g)
	return g, nil
}

// ahead moves what was to come by the clock of one answer, and is over by that of a
// later one, right behind that.
func ahead(g *engine.Grant) {
	for i := range g.Queues {
		if q := &g.Queues[i]; !q.NextDue.IsZero() && !q.NextDue.After(g.Now) {
			q.NextDue = g.Now.Add(time.Millisecond)
		}
	}
}

// leaseNow asks for one want until it has got what it wants or nothing more is there.
func (e *Engine) leaseNow(ctx context.Context, w engine.Want) (all engine.Granted, now time.Time, err error) {
	for bytes := 0; ; {
		n := min(w.Max-len(all.Messages), e.limits.MaxLease)
		a, err := e.lease(ctx, []string{w.Queue}, n, 0, w.TTR)
		if err != nil {
			return all, now, err
		}
		now = a.Now
		if len(a.Queues) != 1 {
			return all, now, problem("%d queues were asked, not 1", len(a.Queues))
		}
		got := a.Queues[0].Granted
		all.Messages = append(all.Messages, a.Messages...)
		all.More, all.Held, all.NextDue, all.Err = got.More, got.Held, got.NextDue, got.Err
		all.Expired += got.Expired
		all.Died += got.Died
		for i := range a.Messages {
			bytes += len(a.Messages[i].Body)
		}
		if got.Err != nil || !got.More || len(all.Messages) >= w.Max || len(a.Messages) == 0 || bytes >= engine.AnswerBytes {
			return all, now, nil
		}
	}
}

// LeaseWait rests on the server until the first message comes. As the server knows
// but one time to run and one maximum for all queues, it first gets the least
// maximum of any want, and then as much more as is there at once.
func (e *Engine) LeaseWait(ctx context.Context, wants []engine.Want, most int, wait time.Duration) (engine.Grant, error) {
	g := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	if len(wants) == 0 {
		g.Now = time.Now()
		return g, e.idle(ctx, "lease")
	}
	queues := make([]string, 0, len(wants))
	at := make(map[string]int, len(wants))
	n := min(most, e.limits.MaxLease)
	for i, w := range wants {
		n = min(n, w.Max)
		if _, twice := at[w.Queue]; !twice {
			at[w.Queue] = i
			queues = append(queues, w.Queue)
		}
	}
	got, err := e.waitFor(ctx, queues, n, wait, wants[0].TTR)
	if err != nil {
		return engine.Grant{}, err
	}
	g.Now = got.Now
	for _, l := range got.Messages {
		i := at[l.Queue]
		g.Queues[i].Messages = append(g.Queues[i].Messages, l)
	}
	if len(got.Messages) == 0 {
		for i := range g.Queues {
			g.Queues[i].NextDue = got.NextDue
		}
	}
	for _, q := range got.Queues {
		if i, ok := at[q.Queue]; ok {
			g.Queues[i].More, g.Queues[i].Held, g.Queues[i].Err = q.More, q.Held, q.Err
			if !q.NextDue.IsZero() || wait == 0 { // after a wait the queues only tell what has ended
				g.Queues[i].NextDue = q.NextDue
			}
			g.Queues[i].Expired += q.Expired
			g.Queues[i].Died += q.Died
		}
	}
	if err := e.sameTTR(ctx, wants, &g); err != nil {
		e.giveBack(ctx, g.Queues)
		return engine.Grant{}, err
	}
	if len(got.Messages) == n && n < most {
		e.topUp(ctx, wants, &g, most-n)
	}
	ahead(&g)
	return g, nil
}

// waitFor waits, also for longer than the server lets wait in one request.
func (e *Engine) waitFor(ctx context.Context, queues []string, n int, wait, ttr time.Duration) (wire.Leased, error) {
	var before []wire.Granted
	for end := time.Now().Add(wait); ; {
		w := wait
		if e.limits.MaxWait > 0 {
			w = min(wait, e.limits.MaxWait.D())
		}
		if e.limits.MaxNow > 0 && len(queues) > e.limits.MaxNow {
			w = max(w, time.Millisecond)
		}
		got, err := e.lease(ctx, queues, n, w, ttr)
		got.Queues = append(before, got.Queues...)
		if wait = time.Until(end); err != nil || len(got.Messages) > 0 || wait < time.Millisecond {
			return got, err
		}
		before = got.Queues
		if err := ctx.Err(); err != nil {
			return wire.Leased{}, (&call{op: "lease"}).fail(err, "")
		}
	}
}

// topUp takes what more is there for wants that have room left.
func (e *Engine) topUp(ctx context.Context, wants []engine.Want, g *engine.Grant, left int) {
	for i, w := range wants {
		if w.Max = min(w.Max-len(g.Queues[i].Messages), left); w.Max <= 0 {
			continue
		}
		got, now, err := e.leaseNow(ctx, w)
		if err != nil {
			return // what there is will do
		}
		if now.After(g.Now) {
			g.Now = now
		}
		q := &g.Queues[i]
		q.Messages = append(q.Messages, got.Messages...)
		q.More, q.Held, q.NextDue = got.More, got.Held, got.NextDue
		q.Expired += got.Expired
		q.Died += got.Died
		left -= len(got.Messages)
	}
}

// sameTTR gives leases the time to run that their want asked for, where that is not
// the first one's.
func (e *Engine) sameTTR(ctx context.Context, wants []engine.Want, g *engine.Grant) error {
	for i, w := range wants {
		if w.TTR == wants[0].TTR || len(g.Queues[i].Messages) == 0 {
			continue
		}
		s := make([]engine.Settlement, len(g.Queues[i].Messages))
		for j, l := range g.Queues[i].Messages {
			s[j] = engine.Settlement{Token: l.Token, Do: engine.Extend, TTR: w.TTR}
		}
		done, err := e.Settle(ctx, s)
		if err != nil {
			return err
		}
		kept := g.Queues[i].Messages[:0]
		for j, l := range g.Queues[i].Messages {
			if done[j].Err == nil {
				l.Deadline = done[j].Until
				kept = append(kept, l)
			}
		}
		g.Queues[i].Messages = kept
	}
	return nil
}

// giveBack releases what a call had leased before it failed.
func (e *Engine) giveBack(ctx context.Context, granted []engine.Granted) {
	var back []engine.Settlement
	for _, g := range granted {
		back = append(back, engine.Releases(g.Messages)...)
	}
	if len(back) > 0 {
		_, _ = e.Settle(context.WithoutCancel(ctx), back) // else they lapse
	}
}

// Claim leases the message if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	l, err := ask(ctx, e, call{op: "claim", ref: ref, method: http.MethodPost, path: wire.RefPath(ref) + "/claim", body: wire.AppendClaim(nil, want.TTR)},
		(*wire.Reader).Info)
	if err == nil {
		e.watch.leased(ref.Queue)
	}
	return l, err
}
