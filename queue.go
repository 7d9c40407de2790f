package tarry

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/calls"
)

// Queue returns what a queue holds; an unknown queue is empty.
func (c *Client) Queue(ctx context.Context, queue string) (QueueInfo, error) {
	o := c.counting("queue", queue, engine.CheckQueue("count", queue))
	return operate(ctx, c, o, func(e engine.Counter) (QueueInfo, error) { return e.Queue(ctx, queue) })
}

// Queues returns the queues that hold messages, are paused or have settings, ordered by
// name, starting after the name after. next is "" at the end. limit is at most 1000; 0 means
// 100.
func (c *Client) Queues(ctx context.Context, after string, limit int) (queues []QueueInfo, next string, err error) {
	limit = cmp.Or(limit, defaultPage)
	o := c.counting("queues", "", engine.CheckLimit("count", "", limit))
	type page struct {
		queues []QueueInfo
		next   string
	}
	p, err := operate(ctx, c, o, func(e engine.Counter) (p page, err error) {
		p.queues, p.next, err = e.Queues(ctx, after, limit)
		return p, err
	})
	return p.queues, p.next, err
}

func (c *Client) counting(metered, queue string, invalid error) operation {
	return operation{op: "count", queue: queue, can: c.caps.Count, what: "counters", invalid: invalid, metered: metered}
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

// Forecast counts the messages that fall due in each step, starting with the current
// minute, and separately the overdue ones, due before that minute. step is a whole number
// of minutes; span is a whole number of steps, at most 10,000.
func (c *Client) Forecast(ctx context.Context, queue string, step, span time.Duration) (Forecast, error) {
	o := c.operation("forecast", queue, c.caps.Forecast, engine.CheckForecast(queue, step, span))
	return operate(ctx, c, o, func(e engine.Forecaster) (Forecast, error) { return e.Forecast(ctx, queue, step, span) })
}

// Pause stops leasing and claiming from a queue for d, or until Resume when d is 0. Pushes,
// cancels and settlements continue. A second Pause replaces the first.
func (c *Client) Pause(ctx context.Context, queue string, d time.Duration) error {
	o := c.operation("pause", queue, c.caps.Pause, engine.CheckPause(queue, d))
	_, err := operate(ctx, c, o, func(e engine.Pauser) (struct{}, error) { return struct{}{}, e.Pause(ctx, queue, d) })
	return err
}

// Resume ends a pause, if there is one.
func (c *Client) Resume(ctx context.Context, queue string) error {
	o := c.operation("resume", queue, c.caps.Pause, nil)
	_, err := operate(ctx, c, o, func(e engine.Pauser) (struct{}, error) { return struct{}{}, e.Resume(ctx, queue) })
	return err
}

// Purge removes the messages that were scheduled or ready when it began. PurgeDead adds
// dead messages, PurgeFinished remembered keys and the finished messages that are listed.
// Purge never removes leased messages, and what it removes is not remembered. It returns how
// many it removed, even when it fails midway.
func (c *Client) Purge(ctx context.Context, queue string, also PurgeAlso) (int64, error) {
	o := c.operation("purge", queue, c.caps.Purge, nil)
	if o.patience = calls.LastWord; also&PurgeFinished != 0 && o.can {
		o.can, o.what = c.caps.Remember || c.caps.History, "remember"
	}
	return operate(ctx, c, o, func(e engine.Purger) (int64, error) { return e.Purge(ctx, queue, also) })
}

// Redrive makes dead messages ready again, with attempt 0: those with the given ids. Without
// ids it takes the limit messages that died first (0: all). It skips a message when a live
// one holds its key.
func (c *Client) Redrive(ctx context.Context, queue string, ids []ID, limit int) (Redriven, error) {
	o := c.operation("redrive", queue, c.caps.Redrive, engine.CheckRedrive(queue, ids, limit))
	o.patience, ids = calls.LastWord, slices.Clone(ids) // the caller may reuse its slice if ctx ends early
	return operate(ctx, c, o, func(e engine.Redriver) (Redriven, error) { return e.Redrive(ctx, queue, ids, limit) })
}

func (c *Client) operation(op, queue string, can bool, invalid error) operation {
	return operation{op: op, queue: queue, can: can, invalid: cmp.Or(engine.CheckQueue(op, queue), invalid)}
}

// Settings returns the stored settings of a queue and their revision, for Configure. They
// are empty for a queue that was never configured.
func (c *Client) Settings(ctx context.Context, queue string) (s Settings, revision string, err error) {
	o := c.operation("settings", queue, c.caps.Settings, nil)
	o.what = settingsOf
	type answer struct {
		Settings
		revision string
	}
	a, err := operate(ctx, c, o, func(e engine.Configurer) (a answer, err error) {
		a.Settings, a.revision, err = e.Settings(ctx, queue)
		return a, err
	})
	return a.Settings, a.revision, err
}

// settingsOf names what an engine lacks that stores no settings.
const settingsOf = "settings of queues"

// Configure replaces all settings of a queue, and returns their revision. Given the revision
// that Settings returned, it fails with ErrStale if the settings have changed since. Given
// "", it overwrites them. ErrInvalid when a setting is not allowed.
func (c *Client) Configure(ctx context.Context, queue string, s Settings, revision string) (string, error) {
	const op = "configure"
	o := c.operation(op, queue, c.caps.Settings, cmp.Or(s.Validate(queue), c.caps.CheckTerms(op, Ref{Queue: queue}, &s.Defaults)))
	o.what, s.Defaults = settingsOf, s.Defaults.Clone()
	return operate(ctx, c, o, func(e engine.Configurer) (string, error) { return e.Configure(ctx, queue, s, revision) })
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
