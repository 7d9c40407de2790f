package sqlengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/token"
)

const minute = int64(time.Minute / time.Millisecond)

// Queue tells what one queue holds.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	const op = "queue"
	if err := e.begin(ctx, op); err != nil {
		return engine.QueueInfo{}, err
	}
	defer e.end()
	info := engine.QueueInfo{Queue: name}
	num, err := e.number(ctx, name, false)
	if err != nil || num == 0 {
		return info, err
	}
	return e.count(ctx, op, num, name)
}

// Queues tells it of the queues that hold something, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	const op = "queues"
	if err := e.begin(ctx, op); err != nil {
		return nil, "", err
	}
	defer e.end()
	if err := engine.CheckLimit(op, "", limit); err != nil {
		return nil, "", err
	}
	for {
		some, err := e.store.Queues(ctx, after, chunk)
		if err != nil {
			return nil, "", err
		}
		for i := range some {
			q := &some[i]
			info, err := e.count(ctx, op, q.Num, q.Name)
			if err != nil {
				return nil, "", err
			}
			if info.Scheduled+info.Ready+info.Leased+info.Dead+info.Finished == 0 && !info.Paused && q.Settings.Unset() {
				continue
			}
			if len(queues) == limit {
				return queues, queues[limit-1].Queue, nil
			}
			queues = append(queues, info)
		}
		if len(some) < chunk {
			return queues, "", nil
		}
		after = some[chunk-1].Name
	}
}

// count tells what a queue holds.
func (e *Engine) count(ctx context.Context, op string, num int64, name string) (info engine.QueueInfo, err error) {
	if err := e.lapseAll(ctx, op, num); err != nil {
		return info, err
	}
	err = e.look(ctx, op, []int64{num}, func(w *work) error {
		h := w.queues[num]
		info = engine.QueueInfo{Queue: name, Paused: h.Paused != 0}
		if info.Paused {
			info.PausedUntil = instant(h.Paused)
		}
		s, err := w.tx.Stock(w.ctx, num, w.ms)
		if err != nil {
			return err
		}
		info.Ready, info.Scheduled = s.Ready, s.Waiting-s.Ready
		info.Leased, info.Dead, info.Finished = s.Leased, s.Dead, s.Finished
		if h.Waiting <= w.ms {
			info.OldestReady = instant(h.Waiting)
		}
		next, err := w.nextDue(num)
		info.NextDue = instant(next)
		return err
	})
	return info, err
}

// nextDue is the least due of the scheduled.
func (w *work) nextDue(q int64) (int64, error) {
	found, err := w.tx.Ranges(w.ctx, []Range{
		{Queue: q, Kind: Waiting, Span: after(w.ms), Most: 1}, {Queue: q, Kind: Ranked, Span: after(w.ms), Most: 1},
	})
	next := int64(never)
	for _, rows := range found {
		for _, r := range rows {
			next = min(next, r.Due)
		}
	}
	return next, err
}

// after is the span of what ends after an instant.
func after(ms int64) token.Span {
	return token.Span{Low: token.Place{At: ms + 1}, High: token.All.High}
}

// Forecast counts the scheduled and ready messages of a queue by due time. Those due before
// the present minute are in no bucket.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) ([]engine.Bucket, error) {
	const op = "forecast"
	if err := e.begin(ctx, op); err != nil {
		return nil, err
	}
	defer e.end()
	if err := engine.CheckForecast(name, step, span); err != nil {
		return nil, err
	}
	num, err := e.number(ctx, name, true)
	if err != nil {
		return nil, err
	}
	if err := e.lapseAll(ctx, op, num); err != nil {
		return nil, err
	}
	buckets := make([]engine.Bucket, span/step)
	minutes := int64(step / time.Minute)
	err = e.look(ctx, op, []int64{num}, func(w *work) error {
		first := MinuteOf(w.ms)
		for i := range buckets {
			buckets[i] = engine.Bucket{From: instant((first + int64(i)*minutes) * minute)}
		}
		due, err := w.tx.Due(w.ctx, num, first, first+int64(len(buckets))*minutes)
		for _, t := range due {
			buckets[(t.Minute-first)/minutes].Count += t.N
		}
		return err
	})
	return buckets, err
}
