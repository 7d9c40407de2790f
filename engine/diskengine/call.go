package diskengine

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/leave"
)

// enter begins a call; leave ends it.
func (e *Engine) enter(ctx context.Context, op string) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	err := e.store.failed()
	if n := e.made.Left(); n >= leave.Most {
		err = &engine.Error{Op: op, Err: engine.ErrUnavailable,
			Hint: fmt.Sprintf("%d calls have waited for so long that their callers left%s", n, e.slowest())}
	} else if err != nil {
		err = broken(op, err)
	}
	if err != nil {
		e.calls.Leave()
	}
	return err
}

func (e *Engine) leave() { e.calls.Leave() }

// do runs fn as one call: what fn answers rests on what p collects, and is
// answered when that is durable. When ctx ends first do returns, and the call goes
// on without its caller: fn must use nothing that is the caller's, and who calls do
// nothing that fn sets.
func (e *Engine) do(ctx context.Context, op string, fn func(now clock, p *pending) error) error {
	return e.doOrElse(ctx, op, nil, fn)
}

// doOrElse is do with a function that is called when the call has succeeded after
// its caller had left.
func (e *Engine) doOrElse(ctx context.Context, op string, late func(), fn func(now clock, p *pending) error) error {
	if err := e.enter(ctx, op); err != nil {
		return err
	}
	if ctx.Done() == nil {
		defer e.leave()
		return e.carryOut(op, fn)
	}
	_, left, err := leave.Make(ctx, &e.made, 0, func(_ struct{}, err error) {
		defer e.leave()
		if err == nil && late != nil {
			late()
		}
	}, func() (struct{}, error) { return struct{}{}, e.carryOut(op, fn) })
	if left {
		return &engine.Error{Op: op, Err: err, Hint: engine.HintUnknown + e.slowest()}
	}
	e.leave()
	return err
}

// carryOut runs fn and waits for what its answer rests on.
func (e *Engine) carryOut(op string, fn func(now clock, p *pending) error) error {
	p := pending{store: e.store}
	err := fn(e.now(), &p)
	if werr := p.wait(); err == nil {
		err = werr
	}
	e.watchers.Hint(p.hints...)
	return e.wrap(op, err)
}

// slowest tells, for a hint, what the disk has not done for a second or more.
func (e *Engine) slowest() string {
	op, ok := e.store.disk.slowest()
	if d := time.Since(op.since); ok && d >= time.Second {
		return fmt.Sprintf("; the disk does not answer: %s %s is under way for %s", op.what, op.name, d.Round(time.Second))
	}
	return ""
}
