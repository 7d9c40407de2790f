package tarry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/coalesce"
	"github.com/tarryhq/tarry/internal/leave"
)

// seam wraps the engine, meters its calls and abandons a call when its context ends. An
// engine may hang in the operating system, where no context reaches it. The goroutine of an
// abandoned call ends when the engine's call does, and leases that it still returns are
// released. Calls of a prompt engine are metered only.
type seam struct {
	eng    engine.Engine
	prompt bool
	meter  *Meter
	calls  leave.Calls
}

const (
	// lastWord is how long to wait, after the context has ended, for a call that may have
	// done a part of its work, to learn how much. A waiting lease gets twice that.
	lastWord = time.Second

	// giveBackPatience bounds the release of leases of abandoned calls.
	giveBackPatience = coalesce.Timeout
)

// leaving makes a call, and abandons it when ctx has been over for patience. late, if not
// nil, gets an answer that comes after that.
func leaving[T any](ctx context.Context, calls *leave.Calls, patience time.Duration, late func(T), call func() (T, error)) (T, error) {
	if n := calls.Left(); n >= leave.Most && ctx.Done() != nil {
		var none T
		return none, &Error{Err: ErrUnavailable, Hint: fmt.Sprintf("the engine has not answered %d calls, whose callers have given up", n)}
	}
	out, _, err := leave.Make(ctx, calls, patience, func(out T, err error) {
		if late != nil && err == nil {
			late(out)
		}
	}, call)
	return out, err
}

// through is leaving with metering: the call is metered when the engine answers, even if it
// was abandoned.
func through[T any](ctx context.Context, s *seam, op string, patience time.Duration, late func(T), call func() (T, error)) (T, error) {
	metered := func() (T, error) {
		start := s.meter.begin()
		out, err := call()
		s.meter.called(op, start, err)
		return out, err
	}
	if s.prompt {
		return metered()
	}
	return leaving(ctx, &s.calls, patience, late, metered)
}

// Push pushes copies, since the caller of an abandoned call may reuse its slices.
func (s *seam) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if s.prompt {
		return s.push(ctx, msgs)
	}
	if ctx.Done() != nil {
		msgs = copied(msgs)
	}
	return s.pushOwn(ctx, msgs)
}

// pushOwn is Push without copies, for messages that nothing changes.
func (s *seam) pushOwn(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	if s.prompt {
		return s.push(ctx, msgs)
	}
	return leaving(ctx, &s.calls, 0, nil, func() ([]engine.PushResult, error) { return s.push(ctx, msgs) })
}

// push, like lease and settle, needs no closure on a prompt engine: a closure costs more
// than the metering.
func (s *seam) push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	start := s.meter.begin()
	out, err := s.eng.Push(ctx, msgs)
	s.meter.pushed(msgs, out, err)
	s.meter.called("push", start, err)
	return out, err
}

func (s *seam) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	p, ok := s.eng.(engine.AtomicPusher)
	if !ok {
		return nil, ErrUnsupported
	}
	if ctx.Done() != nil && !s.prompt {
		msgs = copied(msgs)
	}
	return through(ctx, s, "push", 0, nil, func() ([]engine.PushResult, error) {
		out, err := p.PushAtomic(ctx, msgs)
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

func (s *seam) Lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	if s.prompt {
		return s.lease(ctx, wants)
	}
	wants = slices.Clone(wants)
	late := func(g engine.Grant) {
		var all []engine.Lease
		for _, q := range g.Queues {
			all = append(all, q.Messages...)
		}
		s.giveBack(all)
	}
	return leaving(ctx, &s.calls, 0, late, func() (engine.Grant, error) { return s.lease(ctx, wants) })
}

func (s *seam) lease(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	start := s.meter.begin()
	g, err := s.eng.Lease(ctx, wants)
	s.meter.granted(wants, &g, err)
	s.meter.called("lease", start, err)
	return g, err
}

func (s *seam) LeaseWait(ctx context.Context, w engine.Wait) (engine.Waited, error) {
	waiter, ok := s.eng.(engine.LeaseWaiter)
	if !ok {
		return engine.Waited{}, ErrUnsupported
	}
	late := func(got engine.Waited) { s.giveBack(got.Messages) }
	return through(ctx, s, "wait", 2*lastWord, late, func() (engine.Waited, error) {
		got, err := waiter.LeaseWait(ctx, w)
		s.meter.waited(&got, err)
		return got, err
	})
}

func (s *seam) Claim(ctx context.Context, ref engine.Ref, want engine.Want) (engine.Lease, error) {
	c, ok := s.eng.(engine.Claimer)
	if !ok {
		return engine.Lease{}, ErrUnsupported
	}
	late := func(l engine.Lease) { s.giveBack([]engine.Lease{l}) }
	return through(ctx, s, "claim", 0, late, func() (engine.Lease, error) {
		l, err := c.Claim(ctx, ref, want)
		s.meter.claimed(ref.Queue, err)
		return l, err
	})
}

// giveBack releases leases of an abandoned call. Those that cannot be released will lapse.
func (s *seam) giveBack(ls []engine.Lease) {
	if len(ls) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackPatience)
	defer cancel()
	_, _ = s.eng.Settle(ctx, engine.Releases(ls))
}

func (s *seam) Settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	if s.prompt {
		return s.settle(ctx, in)
	}
	return leaving(ctx, &s.calls, 0, nil, func() ([]engine.Settled, error) { return s.settle(ctx, in) })
}

func (s *seam) settle(ctx context.Context, in []engine.Settlement) ([]engine.Settled, error) {
	start := s.meter.begin()
	out, err := s.eng.Settle(ctx, in)
	s.meter.called("settle", start, err)
	return out, err
}

func (s *seam) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	return through(ctx, s, "cancel", 0, nil, func() ([]error, error) {
		errs, err := s.eng.Cancel(ctx, refs)
		s.meter.cancelled(refs, errs, err)
		return errs, err
	})
}

func (s *seam) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	return through(ctx, s, "reschedule", 0, nil, func() (engine.Info, error) { return s.eng.Reschedule(ctx, ref, due) })
}

func (s *seam) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return through(ctx, s, "get", 0, nil, func() (engine.Info, error) { return s.eng.Get(ctx, ref) })
}

func (s *seam) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	l, ok := s.eng.(engine.Lister)
	if !ok {
		return engine.Page{}, ErrUnsupported
	}
	return through(ctx, s, "list", 0, nil, func() (engine.Page, error) { return l.List(ctx, q) })
}

func (s *seam) Queue(ctx context.Context, queue string) (engine.QueueInfo, error) {
	c, ok := s.eng.(engine.Counter)
	if !ok {
		return engine.QueueInfo{}, ErrUnsupported
	}
	return through(ctx, s, "queue", 0, nil, func() (engine.QueueInfo, error) { return c.Queue(ctx, queue) })
}

func (s *seam) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	type page struct {
		queues []engine.QueueInfo
		next   string
	}
	c, ok := s.eng.(engine.Counter)
	if !ok {
		return nil, "", ErrUnsupported
	}
	p, err := through(ctx, s, "queues", 0, nil, func() (p page, err error) {
		p.queues, p.next, err = c.Queues(ctx, after, limit)
		return p, err
	})
	return p.queues, p.next, err
}

func (s *seam) Forecast(ctx context.Context, queue string, step, span time.Duration) (engine.Forecast, error) {
	f, ok := s.eng.(engine.Forecaster)
	if !ok {
		return engine.Forecast{}, ErrUnsupported
	}
	return through(ctx, s, "forecast", 0, nil, func() (engine.Forecast, error) { return f.Forecast(ctx, queue, step, span) })
}

func (s *seam) Pause(ctx context.Context, queue string, d time.Duration) error {
	p, ok := s.eng.(engine.Pauser)
	if !ok {
		return ErrUnsupported
	}
	_, err := through(ctx, s, "pause", 0, nil, func() (struct{}, error) { return struct{}{}, p.Pause(ctx, queue, d) })
	return err
}

func (s *seam) Resume(ctx context.Context, queue string) error {
	p, ok := s.eng.(engine.Pauser)
	if !ok {
		return ErrUnsupported
	}
	_, err := through(ctx, s, "resume", 0, nil, func() (struct{}, error) { return struct{}{}, p.Resume(ctx, queue) })
	return err
}

func (s *seam) Purge(ctx context.Context, queue string, also engine.PurgeAlso) (int64, error) {
	p, ok := s.eng.(engine.Purger)
	if !ok {
		return 0, ErrUnsupported
	}
	return through(ctx, s, "purge", lastWord, nil, func() (int64, error) { return p.Purge(ctx, queue, also) })
}

func (s *seam) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	r, ok := s.eng.(engine.Redriver)
	if !ok {
		return engine.Redriven{}, ErrUnsupported
	}
	ids = slices.Clone(ids)
	return through(ctx, s, "redrive", lastWord, nil, func() (engine.Redriven, error) { return r.Redrive(ctx, queue, ids, limit) })
}

func (s *seam) Settings(ctx context.Context, queue string) (engine.Settings, string, error) {
	e, ok := s.eng.(engine.Configurer)
	if !ok {
		return engine.Settings{}, "", ErrUnsupported
	}
	type answer struct {
		engine.Settings
		revision string
	}
	a, err := through(ctx, s, "settings", 0, nil, func() (a answer, err error) {
		a.Settings, a.revision, err = e.Settings(ctx, queue)
		return a, err
	})
	return a.Settings, a.revision, err
}

func (s *seam) Configure(ctx context.Context, queue string, settings engine.Settings, revision string) (string, error) {
	e, ok := s.eng.(engine.Configurer)
	if !ok {
		return "", ErrUnsupported
	}
	settings.Defaults = settings.Defaults.Clone()
	return through(ctx, s, "configure", 0, nil, func() (string, error) { return e.Configure(ctx, queue, settings, revision) })
}

func (s *seam) Watch(fn func(queue string)) (stop func()) { return s.eng.Watch(fn) }
func (s *seam) Capabilities() engine.Capabilities         { return s.eng.Capabilities() }
func (s *seam) Close() error                              { return s.eng.Close() }
