package peer

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry/bench/scenario"
)

// Load is calls that concurrent clients make as fast as they can.
type Load struct {
	Kind           string // push or cancel
	Queue          string
	Clients, Batch int
	From, To       int           // the messages; a cancel is a call of its own for each
	For            time.Duration // 0: until all calls are made

	// Message i is due at First + (i-From)*Step, and at random up to Spread later.
	First        time.Time
	Step, Spread time.Duration
}

// Due returns when message i is due.
func (l Load) Due(i int) time.Time {
	due := l.First.Add(time.Duration(i-l.From) * l.Step)
	if l.Spread > time.Minute {
		due = due.Add(scenario.Far(i, l.Spread))
	}
	return due.Truncate(time.Millisecond)
}

// Loader is a System whose process runs loads by itself.
type Loader interface {
	Load(ctx context.Context, l Load) (n int, took time.Duration, err error)
}

// Run has a system carry a load: n messages in a time.
func Run(ctx context.Context, s scenario.System, l Load) (n int, took time.Duration, err error) {
	if s, ok := s.(Loader); ok {
		return s.Load(ctx, l)
	}
	var next, done atomic.Int64
	next.Store(int64(l.From))
	began := time.Now()
	clients, ctx := errgroup.WithContext(ctx)
	for range l.Clients {
		clients.Go(func() error {
			for l.For == 0 || time.Since(began) < l.For {
				from := int(next.Add(int64(l.Batch))) - l.Batch
				to := min(from+l.Batch, l.To)
				if from >= to {
					break
				}
				if err := l.call(ctx, s, from, to); err != nil {
					return err
				}
				done.Add(int64(to - from))
			}
			return nil
		})
	}
	err = clients.Wait()
	return int(done.Load()), time.Since(began), err
}

func (l Load) call(ctx context.Context, s scenario.System, from, to int) error {
	switch {
	case l.Kind == "cancel":
		return s.Cancel(ctx, l.Queue, from)
	case l.Batch == 1:
		return s.Push(ctx, l.Queue, from, l.Due(from))
	}
	return s.PushMany(ctx, l.Queue, from, to, l.Due)
}
