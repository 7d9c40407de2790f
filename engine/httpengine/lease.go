package httpengine

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Lease makes requests for each want separately.
func (e *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if err := e.calls.Enter(ctx, "lease"); err != nil {
		return engine.Grant{}, err
	}
	defer e.calls.Leave()
	g := engine.Grant{Queues: make([]engine.Granted, len(wants))}
	if len(wants) == 0 {
		g.Now = time.Now()
		return g, nil
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
		return engine.Grant{}, g.Queues[0].Err // no want could be asked for
	}
	ahead(&g)
	return g, nil
}

// ahead moves the NextDue of earlier answers after the clock of the last answer.
func ahead(g *engine.Grant) {
	for i := range g.Queues {
		g.Queues[i].NextDue = behind(g.Now, g.Queues[i].NextDue)
	}
}

// behind returns next, but at least the millisecond after now.
func behind(now, next time.Time) time.Time {
	if !next.IsZero() && !next.After(now) {
		return now.Add(time.Millisecond)
	}
	return next
}

// leaseNow asks for one want: once for each worker that takes leases, and repeatedly if the
// server leases fewer at a time.
func (e *Engine) leaseNow(ctx context.Context, w engine.Want) (all engine.Granted, now time.Time, err error) {
	for bytes := 0; ; {
		taker := w.TakerOf(len(all.Messages))
		n := min(w.Max-len(all.Messages), taker.Max, e.limits.MaxLease)
		a, err := e.lease(ctx, wire.LeaseRequest{Queues: []string{w.Queue}, Max: n, TTR: w.TTR, Worker: taker.Worker})
		if err != nil {
			return all, now, err
		}
		if a.Now.After(now) {
			now = a.Now
		}
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
		if got.Err != nil || !got.More || len(all.Messages) >= w.Max || len(a.Messages) < n || bytes >= engine.AnswerBytes {
			return all, now, nil
		}
	}
}

// giveBack releases the leases of a call that failed afterwards. The call has entered, so that
// Close waits for this.
func (e *Engine) giveBack(ctx context.Context, granted []engine.Granted) {
	var back []engine.Settlement
	for _, g := range granted {
		back = append(back, engine.Releases(g.Messages)...)
	}
	for part := range slices.Chunk(back, e.limits.MaxBatch) {
		_, _ = e.settle(context.WithoutCancel(ctx), part) // if it fails, they lapse
	}
}

// Claim leases the message if it is due, or in the state that ref names.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	body := wire.Claiming.Append(nil, &wire.Claim{TTR: want.TTR, Worker: want.Worker})
	l, err := ask(ctx, e, call{op: "claim", ref: ref, method: http.MethodPost, path: wire.RefPath(ref) + "/claim",
		query: wire.RefQuery.FormatQuery(&ref.IfState), body: body, brings: 1}, wire.Info)
	if err == nil {
		e.watch.leased(ref.Queue)
	}
	return l, err
}
