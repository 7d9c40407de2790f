package httpengine

import (
	"context"
	"net/http"
	"time"

	"github.com/tarryhq/tarry/engine"
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
		now = a.now
		if len(a.queues) != 1 {
			return all, now, problem("%d queues were asked, not 1", len(a.queues))
		}
		got := a.queues[0]
		all.Messages = append(all.Messages, a.messages...)
		all.More, all.NextDue, all.Err = got.More, got.NextDue, got.Err
		all.Expired += got.Expired
		all.Died += got.Died
		for i := range a.messages {
			bytes += len(a.messages[i].Body)
		}
		if got.Err != nil || !got.More || len(all.Messages) >= w.Max || len(a.messages) == 0 || bytes >= engine.AnswerBytes {
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
	g.Now = got.now
	for _, l := range got.messages {
		i := at[l.Queue]
		g.Queues[i].Messages = append(g.Queues[i].Messages, l)
	}
	if len(got.messages) == 0 {
		for i := range g.Queues {
			g.Queues[i].NextDue = got.nextDue
		}
	}
	for _, q := range got.queues {
		if i, ok := at[q.queue]; ok {
			g.Queues[i].More, g.Queues[i].Err = q.More, q.Err
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
	if len(got.messages) == n && n < most {
		e.topUp(ctx, wants, &g, most-n)
	}
	ahead(&g)
	return g, nil
}

// waitFor waits, also for longer than the server lets wait in one request.
func (e *Engine) waitFor(ctx context.Context, queues []string, n int, wait, ttr time.Duration) (leased, error) {
	var before []grantedQueue
	for end := time.Now().Add(wait); ; {
		w := wait
		if e.limits.wait > 0 {
			w = min(wait, e.limits.wait)
		}
		if e.limits.MaxNow > 0 && len(queues) > e.limits.MaxNow {
			w = max(w, time.Millisecond)
		}
		got, err := e.lease(ctx, queues, n, w, ttr)
		got.queues = append(before, got.queues...)
		if wait = time.Until(end); err != nil || len(got.messages) > 0 || wait < time.Millisecond {
			return got, err
		}
		before = got.queues
		if err := ctx.Err(); err != nil {
			return leased{}, (&call{op: "lease"}).fail(err, "")
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
		q.More, q.NextDue = got.More, got.NextDue
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
		for _, l := range g.Messages {
			back = append(back, engine.Settlement{Token: l.Token, Do: engine.Release})
		}
	}
	if len(back) > 0 {
		_, _ = e.Settle(context.WithoutCancel(ctx), back) // else they lapse
	}
}

// leased is the answer to a lease request.
type leased struct {
	messages []engine.Lease
	now      time.Time
	nextDue  time.Time
	queues   []grantedQueue
}

type grantedQueue struct {
	queue string
	engine.Granted
}

func (c *cursor) leased() (a leased) {
	c.object(func(name string) {
		switch name {
		case "messages":
			c.array(func() { a.messages = append(a.messages, c.info()) })
		case "now":
			a.now = c.time()
		case "next_due":
			a.nextDue = c.time()
		case "queues":
			c.array(func() { a.queues = append(a.queues, c.granted()) })
		default:
			c.skip()
		}
	})
	return a
}

func (c *cursor) granted() (g grantedQueue) {
	var w *wireError
	c.object(func(name string) {
		switch name {
		case "queue":
			g.queue = c.text()
		case "more":
			g.More = c.flag()
		case "next_due":
			g.NextDue = c.time()
		case "expired":
			g.Expired = int(c.number())
		case "died":
			g.Died = int(c.number())
		case "error":
			w = c.wrong()
		default:
			c.skip()
		}
	})
	if w != nil {
		g.Err = w.err("lease", engine.Ref{Queue: g.queue})
	}
	return g
}

// Claim leases the message if it is due.
func (e *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	body := []byte("{}")
	if want.TTR > 0 {
		body = append(appendDuration([]byte(`{"ttr":`), want.TTR), '}')
	}
	b, err := e.do(ctx, call{op: "claim", ref: ref, method: http.MethodPost, path: refPath(ref) + "/claim", body: body})
	if err != nil {
		return engine.Lease{}, err
	}
	defer b.free()
	var l engine.Lease
	err = read(b.b, func(c *cursor) { l = c.info() })
	e.watch.leased(ref.Queue)
	return l, err
}
