package tarry

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Queue returns what a queue holds; an unknown queue is empty.
func (c *Client) Queue(ctx context.Context, queue string) (QueueInfo, error) {
	const op = "count"
	n, err := c.counter(ctx, op, queue)
	if err = cmp.Or(err, engine.CheckQueue(op, queue)); err != nil {
		return QueueInfo{}, err
	}
	info, err := n.Queue(ctx, queue)
	return info, calls.Fail(op, Ref{Queue: queue}, err)
}

// Queues returns the queues that hold messages, are paused or have settings, ordered by
// name, starting after the name after. next is "" at the end. limit is at most 1000; 0 means
// 100.
func (c *Client) Queues(ctx context.Context, after string, limit int) (queues []QueueInfo, next string, err error) {
	const op = "count"
	n, err := c.counter(ctx, op, "")
	limit = cmp.Or(limit, defaultPage)
	if err = cmp.Or(err, engine.CheckLimit(op, "", limit)); err != nil {
		return nil, "", err
	}
	queues, next, err = n.Queues(ctx, after, limit)
	return queues, next, calls.Fail(op, Ref{}, err)
}

// AllQueues yields the queues that hold messages, are paused or have settings, ordered by
// name. It ends after the first error.
func (c *Client) AllQueues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return pages(func(after string) ([]QueueInfo, string, error) { return c.Queues(ctx, after, engine.MaxPage) })
}

// pages yields what is on the pages that read returns. It ends after the first error.
func pages[T any](read func(after string) (page []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			page, next, err := read(after)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if after = next; after == "" {
				return
			}
		}
	}
}

func (c *Client) counter(ctx context.Context, op, queue string) (engine.Counter, error) {
	n, ok := c.eng.(engine.Counter)
	return n, cmp.Or(c.begin(ctx, op, queue), c.able(ok && c.caps.Count, op, queue, "counters"))
}

// Forecast counts the messages that fall due in each step, starting with the current
// minute, and separately the overdue ones, due before that minute. step is a whole number
// of minutes; span is a whole number of steps, at most 10,000.
func (c *Client) Forecast(ctx context.Context, queue string, step, span time.Duration) (Forecast, error) {
	const op = "forecast"
	f, ok := c.eng.(engine.Forecaster)
	able := c.able(ok && c.caps.Forecast, op, queue, op)
	if err := cmp.Or(c.operate(ctx, op, queue), engine.CheckForecast(queue, step, span), able); err != nil {
		return Forecast{}, err
	}
	all, err := f.Forecast(ctx, queue, step, span)
	return all, calls.Fail(op, Ref{Queue: queue}, err)
}

// Pause stops leasing and claiming from a queue for d, or until Resume when d is 0. Pushes,
// cancels and settlements continue. A second Pause replaces the first.
func (c *Client) Pause(ctx context.Context, queue string, d time.Duration) error {
	const op = "pause"
	p, err := c.pauser(ctx, op, queue)
	if err = cmp.Or(err, engine.CheckPause(queue, d)); err != nil {
		return err
	}
	return calls.Fail(op, Ref{Queue: queue}, p.Pause(ctx, queue, d))
}

// Resume ends a pause, if there is one.
func (c *Client) Resume(ctx context.Context, queue string) error {
	const op = "resume"
	p, err := c.pauser(ctx, op, queue)
	if err != nil {
		return err
	}
	return calls.Fail(op, Ref{Queue: queue}, p.Resume(ctx, queue))
}

func (c *Client) pauser(ctx context.Context, op, queue string) (engine.Pauser, error) {
	p, ok := c.eng.(engine.Pauser)
	return p, cmp.Or(c.operate(ctx, op, queue), c.able(ok && c.caps.Pause, op, queue, op))
}

// Purge removes the messages that were scheduled or ready when it began. PurgeDead adds
// dead messages, PurgeFinished remembered keys and the finished messages that are listed.
// Purge never removes leased messages, and what it removes is not remembered. It returns how
// many it removed, even when it fails midway.
func (c *Client) Purge(ctx context.Context, queue string, also PurgeAlso) (int64, error) {
	const op = "purge"
	p, ok := c.eng.(engine.Purger)
	remembers := also&PurgeFinished == 0 || c.caps.Remember || c.caps.History
	able := cmp.Or(c.able(ok && c.caps.Purge, op, queue, op), c.able(remembers, op, queue, "remember"))
	if err := cmp.Or(c.operate(ctx, op, queue), able); err != nil {
		return 0, err
	}
	n, err := p.Purge(ctx, queue, also)
	return n, calls.Fail(op, Ref{Queue: queue}, err)
}

// Redrive makes dead messages ready again, with attempt 0: those with the given ids. Without
// ids it takes the limit messages that died first (0: all). It skips a message when a live
// one holds its key.
func (c *Client) Redrive(ctx context.Context, queue string, ids []ID, limit int) (Redriven, error) {
	const op = "redrive"
	r, ok := c.eng.(engine.Redriver)
	able := c.able(ok && c.caps.Redrive, op, queue, op)
	if err := cmp.Or(c.operate(ctx, op, queue), engine.CheckRedrive(queue, ids, limit), able); err != nil {
		return Redriven{}, err
	}
	n, err := r.Redrive(ctx, queue, ids, limit)
	return n, calls.Fail(op, Ref{Queue: queue}, err)
}

func (c *Client) operate(ctx context.Context, op, queue string) error {
	return cmp.Or(c.begin(ctx, op, queue), engine.CheckQueue(op, queue))
}

// Settings returns the stored settings of a queue and their revision, for Configure. They
// are empty for a queue that was never configured.
func (c *Client) Settings(ctx context.Context, queue string) (s Settings, revision string, err error) {
	const op = "settings"
	e, err := c.configurer(ctx, op, queue)
	if err != nil {
		return Settings{}, "", err
	}
	s, revision, err = e.Settings(ctx, queue)
	return s, revision, calls.Fail(op, Ref{Queue: queue}, err)
}

// Configure replaces all settings of a queue, and returns their revision. Given the revision
// that Settings returned, it fails with ErrStale if the settings have changed since. Given
// "", it overwrites them. ErrInvalid when a setting is not allowed.
func (c *Client) Configure(ctx context.Context, queue string, s Settings, revision string) (string, error) {
	const op = "configure"
	e, err := c.configurer(ctx, op, queue)
	if err = cmp.Or(err, s.Validate(queue), c.caps.CheckTerms(op, Ref{Queue: queue}, &s.Defaults)); err != nil {
		return "", err
	}
	revision, err = e.Configure(ctx, queue, s, revision)
	return revision, calls.Fail(op, Ref{Queue: queue}, err)
}

func (c *Client) configurer(ctx context.Context, op, queue string) (engine.Configurer, error) {
	e, ok := c.eng.(engine.Configurer)
	return e, cmp.Or(c.operate(ctx, op, queue), c.able(ok && c.caps.Settings, op, queue, "settings of queues"))
}

// readyQueue is the queue that Ready counts on an engine without a readiness check.
const readyQueue = "readyz"

// Ready returns nil when pushes and all other calls can be expected to succeed. Otherwise
// its error says why not and what to do. ErrNoSpace: the disk is full; leasing, settling and
// cancelling still work. ErrUnavailable: the engine has stopped, or its store does not
// answer. On an engine without a readiness check, Ready counts a queue. An engine that
// cannot count is taken to be ready.
func (c *Client) Ready(ctx context.Context) error {
	const op = "ready"
	if err := c.begin(ctx, op, ""); err != nil {
		return err
	}
	if r, ok := c.Engine().(engine.Readier); ok {
		if c.seam != nil {
			return calls.Fail(op, Ref{}, c.seam.Ready(ctx))
		}
		return calls.Fail(op, Ref{}, r.Ready(ctx))
	}
	if !c.caps.Count {
		return nil
	}
	_, err := c.Queue(ctx, readyQueue)
	return err
}
