package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

// lateness pushes n messages that fall due at a steady rate, starting shortly after the pushes
// end. It measures from each stored due time to the start of the handler.
func (t *trial) lateness(ctx context.Context) error {
	t.result.Rate = t.Rate
	return t.handled(ctx, func(first time.Time, i int) time.Time {
		return first.Add(time.Duration(float64(i) / float64(t.Rate) * float64(time.Second)))
	})
}

// burst pushes n messages due at the same instant, and measures from then to the last ack. The
// latencies are those of the handlers' starts.
func (t *trial) burst(ctx context.Context) error {
	return t.handled(ctx, func(first time.Time, _ int) time.Time { return first })
}

// handled pushes messages, and measures their handling from when the first is due.
func (t *trial) handled(ctx context.Context, due func(first time.Time, i int) time.Time) error {
	first, err := t.pushAhead(ctx, due)
	if err != nil {
		return err
	}
	d, err := t.deliver(ctx, first)
	if err != nil {
		return err
	}
	t.result.took(d.last().Sub(first), t.N)
	t.result.latencies(&d.late)
	return nil
}

// pushAhead pushes all messages early enough before the first is due, and returns when that
// is. It estimates the time for the pushes with a few messages that it then cancels. If the
// engine cannot cancel, these are due at once.
func (t *trial) pushAhead(ctx context.Context, due func(first time.Time, i int) time.Time) (first time.Time, err error) {
	t.result.Batch = t.Batch
	probe := min(t.N, 20*t.Batch)
	start := time.Now()
	warm := func(i int) string { return "warm-" + key(i) }
	cancels := t.c.Capabilities().Cancel
	when := dueAfterRun
	if !cancels {
		when = func(int) tarry.Due { return tarry.In(0) }
	}
	err = t.each(ctx, "messages pushed to warm up", probe, t.Batch, nil, t.pushing(warm, when))
	if err != nil {
		return first, err
	}
	each := time.Since(start) / time.Duration(probe)
	if !cancels {
		probe = 0
	}
	err = t.each(ctx, "of these cancelled", probe, t.Batch, nil, func(ctx context.Context, from, to int) error {
		refs := make([]tarry.Ref, 0, to-from)
		for i := from; i < to; i++ {
			refs = append(refs, tarry.Ref{Queue: t.queue, Key: warm(i)})
		}
		_, err := t.c.CancelMany(ctx, refs)
		return err
	})
	if err != nil {
		return first, err
	}
	lead := time.Second + 2*each*time.Duration(t.N)
	first = time.Now().Add(lead).Truncate(time.Millisecond)
	err = t.each(ctx, "pushed", t.N, t.Batch, nil, t.pushing(key, func(i int) tarry.Due { return tarry.At(due(first, i)) }))
	if left := time.Until(first); left < 0 {
		t.result.Note = fmt.Sprintf("the pushes ended %s after the first message was due, so the lateness is theirs too", -left.Round(time.Millisecond))
		t.Progress(t.scenario + ": " + t.result.Note)
	}
	return first, err
}

// delivery is what the worker of a scenario has seen.
type delivery struct {
	begun    sync.Map // ids of messages with a handler that has started
	late     histogram
	seen     []atomic.Uint32 // handlers started, by message
	distinct atomic.Int64
	early    atomic.Int64
	again    atomic.Int64
	lastAck  atomic.Int64 // Unix nanoseconds
	progress atomic.Int64 // when the last message came, in Unix nanoseconds
}

func (d *delivery) last() time.Time { return time.Unix(0, d.lastAck.Load()) }

// patience is how long after the last due time and the last message the missing ones count as
// lost.
const patience = 15 * time.Second

// deliver handles the messages with a worker and handlers that do nothing, until all are acked
// or no more come.
func (t *trial) deliver(ctx context.Context, first time.Time) (*delivery, error) {
	d := &delivery{seen: make([]atomic.Uint32, t.N)}
	done := make(chan struct{})
	var settled atomic.Int64
	w := tarry.NewWorker(t.c, &tarry.WorkerConfig{
		Concurrency:  max(t.Clients, 1),
		DrainTimeout: 5 * time.Second,
		Observer: func(e tarry.Event) {
			if e.Kind != tarry.Acked {
				return
			}
			if _, mine := d.begun.LoadAndDelete(e.ID); !mine {
				return
			}
			now := time.Now().UnixNano()
			for last := d.lastAck.Load(); now > last && !d.lastAck.CompareAndSwap(last, now); last = d.lastAck.Load() {
			}
			if settled.Add(1) == int64(t.N) {
				close(done)
			}
		},
	})
	tarry.Handle(w, tarry.NewTopic[[]byte](t.queue), func(_ context.Context, m *tarry.Message[[]byte]) error {
		now := time.Now()
		i := index(t.nameOf(m))
		if i < 0 || i >= t.N {
			return nil
		}
		d.begun.Store(m.ID, nil)
		late := now.Sub(m.Due)
		if late < 0 {
			d.early.Add(1)
		}
		d.late.add(late)
		if d.seen[i].Add(1) > 1 {
			d.again.Add(1)
		} else {
			d.distinct.Add(1)
		}
		d.progress.Store(now.UnixNano())
		return nil
	})
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	var (
		worker    sync.WaitGroup
		workerErr error
	)
	worker.Go(func() { workerErr = w.Run(working) })
	undisturb := t.pushInBackground(ctx)
	stopWatch := t.reportProgress("handled", t.N, &d.distinct)
	err := t.await(ctx, d, first, done)
	stopWatch()
	disturbErr := undisturb()
	stopWorking()
	worker.Wait()
	switch {
	case err != nil:
		return nil, err
	case workerErr != nil:
		return nil, workerErr
	case disturbErr != nil:
		return nil, disturbErr
	}
	t.result.Early = d.early.Load()
	t.result.Dups = d.again.Load()
	t.result.Lost = int64(t.N) - d.distinct.Load()
	return d, nil
}

// await returns when all messages are acked or, after the last due time, none has come for
// patience.
func (t *trial) await(ctx context.Context, d *delivery, first time.Time, done <-chan struct{}) error {
	end := first
	if t.scenario == "lateness" {
		end = first.Add(time.Duration(float64(t.N) / float64(t.Rate) * float64(time.Second)))
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if since := max(d.progress.Load(), end.UnixNano()); time.Since(time.Unix(0, since)) > patience {
				return nil
			}
		}
	}
}
