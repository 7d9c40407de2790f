package bench

import (
	"context"
	"time"

	"github.com/tarryhq/tarry"
)

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
