package calls

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Engine wraps an engine. It meters calls, and abandons a call when its context ends: an
// engine may hang in the operating system, where no context reaches it. The goroutine of an
// abandoned call ends when the engine's call does, and leases that it still returns are
// released. Calls of a prompt engine are only metered.
type Engine struct {
	engine.Engine
	prompt bool // its calls are not abandoned
	meter  *Meter
	calls  Leaver
}

// Wrap wraps an engine. A prompt engine is only metered.
func Wrap(eng engine.Engine, prompt bool, meter *Meter) *Engine {
	return &Engine{Engine: eng, prompt: prompt, meter: meter}
}

// Inner returns the engine inside.
func (s *Engine) Inner() engine.Engine { return s.Engine }

// Wait waits up to patience for abandoned calls, and for the release of what they leased.
func (s *Engine) Wait(patience time.Duration) {
	s.calls.Wait(patience)
}

// Ready asks the engine whether it is ready.
func (s *Engine) Ready(ctx context.Context) error {
	r, ok := s.Engine.(engine.Readier)
	if !ok {
		return engine.ErrUnsupported
	}
	_, err := Leaving(ctx, &s.calls, 0, nil, func() (struct{}, error) { return struct{}{}, r.Ready(ctx) })
	return err
}

const (
	// LastWord is how long a call that may have done part of its work is given, after its
	// context has ended, to say how much it did. A waiting lease gets twice that.
	LastWord = time.Second

	// giveBackPatience bounds the release of leases of abandoned calls.
	giveBackPatience = Timeout
)

// Leaving makes a call, and abandons it once ctx has been over for patience. late, if not
// nil, gets the result of an abandoned call that succeeds. While too many abandoned calls
// are under way, Leaving fails at once.
func Leaving[T any](ctx context.Context, calls *Leaver, patience time.Duration, late func(T), call func() (T, error)) (T, error) {
	if n := calls.Left(); n >= MaxLeft && ctx.Done() != nil {
		var none T
		return none, &engine.Error{Err: engine.ErrUnavailable, Hint: fmt.Sprintf("the engine has not answered %d calls, whose callers have given up", n)}
	}
	out, _, err := Make(ctx, calls, patience, func(out T, err error) {
		if late != nil && err == nil {
			late(out)
		}
	}, call)
	return out, err
}

// Through is Leaving with metering: the call is metered when the engine answers, even if it
// was abandoned. With a nil Engine it only makes the call.
func Through[T any](ctx context.Context, s *Engine, op string, patience time.Duration, late func(T), call func() (T, error)) (T, error) {
	if s == nil {
		return call()
	}
	metered := func() (T, error) {
		start := s.meter.begin()
		out, err := call()
		s.meter.called(op, start, err)
		return out, err
	}
	if s.prompt {
		return metered()
	}
	return Leaving(ctx, &s.calls, patience, late, metered)
}

// optional is Through for a call that only some engines have, those that implement I.
func optional[I, T any](ctx context.Context, s *Engine, op string, patience time.Duration, late func(T), call func(eng I) (T, error)) (T, error) {
	eng, ok := s.Engine.(I)
	if !ok {
		var none T
		return none, engine.ErrUnsupported
	}
	return Through(ctx, s, op, patience, late, func() (T, error) { return call(eng) })
}

// Push pushes copies, since the caller of an abandoned call may reuse its slices.
func (s *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if ctx.Done() != nil && !s.prompt {
		msgs = copied(msgs)
	}
	return s.PushOwn(ctx, msgs)
}

// PushOwn is Push without copies, for messages that nobody changes.
func (s *Engine) PushOwn(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	return Through(ctx, s, "push", 0, nil, func() ([]engine.PushResult, error) {
		out, err := s.Engine.Push(ctx, msgs)
		s.meter.pushed(msgs, out, err)
		return out, err
	})
}

// PushAtomic calls the engine's.
func (s *Engine) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if ctx.Done() != nil && !s.prompt {
		msgs = copied(msgs)
	}
	return optional(ctx, s, "push", 0, nil, func(eng engine.AtomicPusher) ([]engine.PushResult, error) {
		out, err := eng.PushAtomic(ctx, msgs)
		s.meter.pushed(msgs, out, err)
		return out, err
	})
}

func copied(msgs []engine.Message) []engine.Message {
	msgs = slices.Clone(msgs)
	for i := range msgs {
		m := &msgs[i]
		m.Body, m.Headers, m.Terms = slices.Clone(m.Body), slices.Clone(m.Headers), m.Terms.Clone()
	}
	return msgs
}

// Lease calls the engine's.
func (s *Engine) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if !s.prompt {
		wants = slices.Clone(wants)
		for i := range wants {
			wants[i].Takers = slices.Clone(wants[i].Takers)
		}
	}
	late := func(g engine.Grant) {
		var all []engine.Lease
		for _, q := range g.Queues {
			all = append(all, q.Messages...)
		}
		s.giveBack(all)
	}
	return Through(ctx, s, "lease", 0, late, func() (engine.Grant, error) {
		g, err := s.Engine.Lease(ctx, wants)
		s.meter.granted(wants, &g, err)
		return g, err
	})
}

// LeaseWait calls the engine's.
func (s *Engine) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	late := func(got engine.Waited) { s.giveBack(got.Messages) }
	return optional(ctx, s, "wait", 2*LastWord, late, func(eng engine.LeaseWaiter) (engine.Waited, error) {
		got, err := eng.LeaseWait(ctx, w)
		s.meter.waited(&got, err)
		return got, err
	})
}

// Claim calls the engine's.
func (s *Engine) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	late := func(l engine.Lease) { s.giveBack([]engine.Lease{l}) }
	return optional(ctx, s, "claim", 0, late, func(eng engine.Claimer) (engine.Lease, error) {
		l, err := eng.Claim(ctx, ref, want)
		s.meter.claimed(ref.Queue, err)
		return l, err
	})
}

// giveBack releases leases of an abandoned call. Those that cannot be released will lapse.
func (s *Engine) giveBack(ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackPatience)
	defer cancel()
	_, _ = s.Engine.Settle(ctx, engine.Releases(ls))
}

// Settle calls the engine's.
func (s *Engine) Settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	return Through(ctx, s, "settle", 0, nil, func() ([]engine.Settled, error) { return s.Engine.Settle(ctx, in) })
}

// Cancel calls the engine's.
func (s *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	return Through(ctx, s, "cancel", 0, nil, func() ([]error, error) {
		errs, err := s.Engine.Cancel(ctx, refs)
		s.meter.cancelled(refs, errs, err)
		return errs, err
	})
}

// Reschedule calls the engine's.
func (s *Engine) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	return Through(ctx, s, "reschedule", 0, nil, func() (engine.Info, error) { return s.Engine.Reschedule(ctx, ref, due) })
}

// Get calls the engine's.
func (s *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return Through(ctx, s, "get", 0, nil, func() (engine.Info, error) { return s.Engine.Get(ctx, ref) })
}

// List calls the engine's.
func (s *Engine) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	return optional(ctx, s, "list", 0, nil, func(eng engine.Lister) (engine.Page, error) { return eng.List(ctx, q) })
}
