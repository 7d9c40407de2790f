package rabbitengine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Push publishes messages and returns once the broker has confirmed them. The due time is by
// this process's clock; the broker itself counts the delay.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	const op = "push"
	if err := e.gate.Enter(ctx, op); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	results := make([]engine.PushResult, len(msgs))
	if len(msgs) == 0 {
		return results, nil
	}
	s, err := e.current(ctx, op, "")
	if err != nil {
		return nil, err
	}
	p := posting{op: op, s: s}
	for i := range msgs {
		m := &msgs[i]
		info, err := e.message(m)
		if err != nil {
			results[i].Err = err
			p.skip()
			continue
		}
		p.putIn(ctx, info, delayOf(m, info))
		results[i] = engine.PushResult{Outcome: engine.Created, ID: info.ID, Due: info.Due, State: engine.Scheduled}
		if !info.Due.After(info.Created) {
			results[i].State = engine.Ready
		}
	}
	errs := p.confirm(ctx)
	for i := range results {
		if results[i].Err == nil && errs[i] != nil {
			results[i] = engine.PushResult{Err: errs[i]}
		}
		if results[i].Err == nil {
			e.watchers.Hint(msgs[i].Queue)
		}
	}
	return results, nil
}

// message converts a pushed message, or returns an error for what RabbitMQ cannot do.
func (e *Engine) message(m *engine.Message) (*engine.Info, error) {
	ref := engine.Ref{Queue: m.Queue, Key: m.Key}
	now := time.Now()
	if m.Key != "" {
		return nil, lacks("push", ref, "RabbitMQ has no keys: push without one, or use another engine")
	}
	if err := cmp.Or(e.caps.CheckTerms("push", ref, &m.Terms), e.caps.CheckWhen("push", ref, m.Due, now)); err != nil {
		return nil, err
	}
	if len(m.Body) > maxBody {
		return nil, &engine.Error{Op: "push", Queue: m.Queue, Err: engine.ErrTooLarge, Hint: fmt.Sprintf("this engine takes bodies of up to %d bytes", maxBody)}
	}
	due := time.UnixMilli(m.Due.Resolve(now)).UTC()
	return &engine.Info{
		ID: e.ids.next(), Queue: m.Queue, Due: due, Created: now.UTC().Truncate(time.Millisecond),
		Content: m.Content, Policy: m.Resolve(nil),
	}, nil
}

// posting publishes several messages before it waits for the first confirm.
type posting struct {
	op   string
	s    *session
	sent []sending
}

// skip leaves a place empty.
func (p *posting) skip() { p.sent = append(p.sent, sending{}) }

// delayOf returns how long the broker must delay a message. Due times are rounded up to a
// millisecond. A relative delay is used as given, because rounding would cost one more unit.
func delayOf(m *engine.Message, info *engine.Info) time.Duration {
	if m.Due.At.IsZero() {
		return m.Due.In
	}
	return time.Until(info.Due)
}

// put publishes a message by its due time.
func (p *posting) put(ctx context.Context, m *engine.Info) { p.putIn(ctx, m, time.Until(m.Due)) }

// putIn publishes a message after a delay.
func (p *posting) putIn(ctx context.Context, m *engine.Info, delay time.Duration) {
	if err := p.s.ensure(ctx, brokerQueue{queue: m.Queue}); err != nil {
		p.fail(m, err)
		return
	}
	to, _ := p.s.layout.to(m.Queue, delay)
	if err := p.s.ensureDelay(ctx, to.units); err != nil {
		p.fail(m, err)
		return
	}
	p.send(ctx, to, m)
}

// bury publishes a dead message.
func (p *posting) bury(ctx context.Context, m *engine.Info) {
	if err := p.s.ensure(ctx, brokerQueue{queue: m.Queue, dead: true}); err != nil {
		p.fail(m, err)
		return
	}
	p.send(ctx, route{exchange: p.s.layout.dead(), key: word(m.Queue)}, m)
}

func (p *posting) send(ctx context.Context, to route, m *engine.Info) {
	if len(m.Body) > large {
		sent, err := p.s.alone(ctx, to, m)
		p.sent = append(p.sent, sending{err: refused(p.op, m, err, sent)})
		return
	}
	x, err := p.s.send(ctx, p.s.nextChannel(), to, m)
	if err != nil {
		p.fail(m, err)
		return
	}
	p.sent = append(p.sent, x)
}

func (p *posting) fail(m *engine.Info, err error) {
	p.sent = append(p.sent, sending{err: refused(p.op, m, err, false)})
}

// confirm waits for the confirms and returns the result of each.
func (p *posting) confirm(ctx context.Context) []error {
	errs := make([]error, len(p.sent))
	for i, x := range p.sent {
		if errs[i] = x.err; x.confirm != nil {
			errs[i] = refused(p.op, x.m, x.confirmed(ctx), true)
		}
	}
	return errs
}
