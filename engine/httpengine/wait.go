package httpengine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// LeaseWait waits on the server for the first message. It makes several requests if the
// server allows only shorter waits.
func (e *Engine) LeaseWait(ctx context.Context, w engine.Wait) (all engine.Waited, err error) {
	req := wire.LeaseRequest{Max: min(w.Max, e.limits.MaxLease), TTR: w.TTR, Worker: w.Worker}
	for q, n := range w.Room {
		req.Room = append(req.Room, wire.Room{Queue: q, Max: n})
	}
	start := time.Now()
	for left, end := w.For, start.Add(w.For); ; {
		req.Wait = left
		if e.limits.MaxWait > 0 {
			req.Wait = min(req.Wait, e.limits.MaxWait.D())
		}
		if e.limits.MaxNow > 0 && len(w.Queues) > e.limits.MaxNow {
			req.Wait = max(req.Wait, time.Millisecond)
		}
		sent := time.Now()
		got, err := e.leaseOf(ctx, w.Queues, req)
		if err != nil {
			return engine.Waited{}, err
		}
		for _, q := range got.Queues {
			if q.Expired != 0 || q.Died != 0 || q.Held || q.Err != nil {
				all.Told = append(all.Told, engine.Told{Queue: q.Queue, Expired: q.Expired, Died: q.Died, Held: q.Held, Err: q.Err})
			}
		}
		all.Messages, all.Now, all.NextDue = got.Messages, got.Now, behind(got.Now, got.NextDue)
		all.Waited = sent.Sub(start) + min(got.Waited, time.Since(sent))
		if left = time.Until(end); len(got.Messages) > 0 || left < time.Millisecond {
			return all, nil
		}
		if err := ctx.Err(); err != nil {
			return engine.Waited{}, (&call{op: "lease"}).fail(err, "")
		}
	}
}

// leaseOf makes a lease request. It sends a long list of queues only once: the server keeps it
// as a set, and later requests name the set.
func (e *Engine) leaseOf(ctx context.Context, queues []string, req wire.LeaseRequest) (wire.Leased, error) {
	if len(queues) < minSetQueues || req.Wait == 0 {
		req.Queues = queues
		return e.lease(ctx, req)
	}
	if kept, ok := e.sets.take(queues); ok {
		req.Set = kept.id
		got, err := e.lease(ctx, req)
		if !errors.Is(err, engine.ErrNotFound) {
			e.sets.put(kept) // even after a failure: once the set is gone, the server answers not_found
			return got, err
		}
	}
	req.Queues, req.Set, req.Keep = slices.Clone(queues), "", true
	got, err := e.lease(ctx, req)
	if got.Set != "" {
		e.sets.put(set{req.Queues, got.Set})
	}
	return got, err
}
