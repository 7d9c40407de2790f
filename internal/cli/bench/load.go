package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/duration"
)

// each calls call for 0 to n-1, batch numbers at a time, from all clients, as fast as they
// can. It stops at the first error or when ctx ends. The latency of each call is added to h,
// unless h is nil.
func (t *trial) each(ctx context.Context, what string, n, batch int, h *histogram, call func(ctx context.Context, from, to int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	stop := t.reportProgress(what, n, &done)
	defer stop()
	var clients sync.WaitGroup
	for range min(t.Clients, (n+batch-1)/batch) {
		clients.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(batch))) - batch
				if from >= n {
					return
				}
				to := min(from+batch, n)
				start := time.Now()
				if err := call(ctx, from, to); err != nil {
					cancel(err)
					return
				}
				if h != nil {
					h.add(time.Since(start))
				}
				done.Add(int64(to - from))
			}
		})
	}
	clients.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// reportProgress reports progress every second until stop is called.
func (t *trial) reportProgress(what string, n int, done *atomic.Int64) (stop func()) {
	stopped := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		last := int64(0)
		for {
			select {
			case <-tick.C:
				now := done.Load()
				t.Progress(fmt.Sprintf("%s: %s %d of %d (%d/s)", t.scenario, what, now, n, now-last))
				last = now
			case <-stopped:
				return
			}
		}
	})
	return func() { close(stopped); reporter.Wait() }
}

// pushing returns a call that pushes messages from to to-1, each due at due(i).
func (t *trial) pushing(name func(int) string, due func(i int) tarry.Due) func(ctx context.Context, from, to int) error {
	return func(ctx context.Context, from, to int) error {
		msgs := make([]tarry.Draft, to-from)
		for i := range msgs {
			msgs[i] = tarry.NewDraft(t.queue, t.body(from+i), t.named(name(from+i)), due(from+i))
		}
		pushed, err := t.c.PushMany(ctx, msgs)
		if err != nil {
			return err
		}
		for _, p := range pushed {
			if p.Err != nil {
				return p.Err
			}
		}
		return nil
	}
}

func dueWithin48h(i int) tarry.Due { return tarry.In(far(i)) }

// background returns the name of a background message.
func background(i int) string { return "far-" + key(i) }

// dueAfterRun returns a due time after any run, so that no worker meets a background message.
func dueAfterRun(i int) tarry.Due { return tarry.In(24*time.Hour + far(i)) }

// pushBackground pushes the messages that are pending during a whole scenario.
func (t *trial) pushBackground(ctx context.Context) error {
	if t.BackgroundPending <= 0 {
		return nil
	}
	return t.each(ctx, "background messages", t.BackgroundPending, fillBatch, nil, t.pushing(background, dueAfterRun))
}

// fillBatch is how many messages a call pushes when its latency does not matter.
const fillBatch = 500

// pushInBackground pushes BackgroundRate messages a second in single calls, until stop is
// called. stop sets the rate and latency in the result. The load is open loop: a latency
// counts from when the rate schedules a push, even if no client is free then. A push that has
// not ended at the stop counts with its wait so far.
func (t *trial) pushInBackground(ctx context.Context) (stop func() error) {
	if t.BackgroundRate <= 0 {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	var (
		h          histogram
		next, done atomic.Int64
		failure    atomic.Pointer[error]
		clients    sync.WaitGroup
	)
	start := time.Now()
	at := func(n int64) time.Time {
		return start.Add(time.Duration(float64(n) / float64(t.BackgroundRate) * float64(time.Second)))
	}
	for range t.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if duration.Sleep(ctx, time.Until(at(n))) {
					i := t.BackgroundPending + int(n)
					_, err := t.c.Push(ctx, t.queue, t.body(i), t.named(background(i)), dueAfterRun(i))
					switch {
					case err == nil:
						done.Add(1)
					case ctx.Err() == nil:
						failure.CompareAndSwap(nil, &err)
						cancel()
					}
				}
				if late := time.Since(at(n)); late >= 0 {
					h.add(late)
				}
			}
		})
	}
	return func() error {
		end := time.Now()
		cancel()
		clients.Wait()
		for n := next.Load(); at(n).Before(end); n++ {
			h.add(end.Sub(at(n)))
		}
		t.result.BackgroundRate = t.BackgroundRate
		t.result.BackgroundPushes = round(float64(done.Load())/end.Sub(start).Seconds(), 1)
		t.result.BackgroundP99 = millis(h.quantile(0.99))
		t.result.BackgroundP999 = millis(h.quantile(0.999))
		if err := failure.Load(); err != nil {
			return fmt.Errorf("a background push failed: %w", *err)
		}
		return nil
	}
}

// push pushes n messages in single calls, due at random over the next 48 hours.
func (t *trial) push(ctx context.Context) error {
	return t.measure(ctx, "pushed", 1, func(ctx context.Context, i, _ int) error {
		_, err := t.c.Push(ctx, t.queue, t.body(i), t.named(key(i)), dueWithin48h(i))
		return err
	})
}

// pushBatch is like push with Batch messages a call. Each latency is that of a whole call.
func (t *trial) pushBatch(ctx context.Context) error {
	return t.measure(ctx, "pushed", t.Batch, t.pushing(key, dueWithin48h))
}

// cancel cancels n messages by key in single calls, in shuffled order.
func (t *trial) cancel(ctx context.Context) error {
	if err := t.pushAll(ctx); err != nil {
		return err
	}
	step := coprime(t.N)
	return t.measure(ctx, "cancelled", 1, func(ctx context.Context, i, _ int) error {
		return t.c.Cancel(ctx, tarry.ByKey(key(i*step%t.N)).Of(t.queue))
	})
}

// pushAll pushes n messages due over the next 48 hours, before a measurement.
func (t *trial) pushAll(ctx context.Context) error {
	return t.each(ctx, "messages pushed beforehand", t.N, fillBatch, nil, t.pushing(key, dueWithin48h))
}

// measure times n calls, or n messages in batches, from first to last.
func (t *trial) measure(ctx context.Context, what string, batch int, call func(ctx context.Context, from, to int) error) error {
	t.result.Batch = batch
	var h histogram
	start := time.Now()
	if err := t.each(ctx, what, t.N, batch, &h, call); err != nil {
		return err
	}
	t.result.took(time.Since(start), t.N)
	t.result.latencies(&h)
	return nil
}

// coprime returns a step by which i*step%n visits each of 0 to n-1 once, out of order.
func coprime(n int) int {
	for step := n*5/8 + 1; ; step++ {
		a, b := step, n
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
	}
}
