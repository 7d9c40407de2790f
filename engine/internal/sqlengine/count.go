package sqlengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Queue returns the counts of a queue.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	const op = "queue"
	if err := e.calls.Enter(ctx, op); err != nil {
		return engine.QueueInfo{}, err
	}
	defer e.calls.Leave()
	info := engine.QueueInfo{Queue: name}
	num, err := e.number(ctx, name, false)
	if err != nil || num == 0 {
		return info, err
	}
	infos, err := e.count(ctx, op, []int64{num})
	if err != nil {
		return info, err
	}
	return infos[0], nil
}

// Queues lists the queues that hold something, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	const op = "queues"
	if err := e.calls.Enter(ctx, op); err != nil {
		return nil, "", err
	}
	defer e.calls.Leave()
	if err := engine.CheckLimit(op, "", limit); err != nil {
		return nil, "", err
	}
	for {
		most := min(QueuesMost, max(limit+1-len(queues), queuesLeast))
		some, err := e.store.Queues(ctx, after, most)
		if err != nil || len(some) == 0 {
			return queues, "", err
		}
		nums := make([]int64, len(some))
		for i := range some {
			nums[i] = some[i].Num
		}
		infos, err := e.count(ctx, op, nums)
		if err != nil {
			return nil, "", err
		}
		for i, info := range infos {
			if info.Scheduled+info.Ready+info.Leased+info.Dead+info.Finished+info.History == 0 && !info.Paused && some[i].Settings.Unset() {
				continue
			}
			if len(queues) == limit {
				return queues, queues[limit-1].Queue, nil
			}
			queues = append(queues, info)
		}
		if len(some) < most {
			return queues, "", nil
		}
		after = some[most-1].Name
	}
}

// queuesLeast is the least number of queues to read at a time, since empty ones are left out.
const queuesLeast = 100

// count returns the counts of up to QueuesMost queues. The number of statements does not grow
// with them, except for overdue leases.
func (e *Engine) count(ctx context.Context, op string, queues []int64) (infos []engine.QueueInfo, err error) {
	err = e.lookWithoutLapsed(ctx, op, queues, func(w *work) error {
		stock, err := w.tx.Stock(w.ctx, queues, w.ms)
		if err != nil {
			return err
		}
		infos = make([]engine.QueueInfo, len(queues))
		var ready []int64
		var at []int
		for i, q := range queues {
			h, s := w.queues[q], stock[q]
			info := engine.QueueInfo{
				Queue: h.Name, Scheduled: s.Waiting - s.Ready, Ready: s.Ready, Leased: s.Leased, Dead: s.Dead, Finished: s.Finished, History: s.History,
				NextDue: rules.Instant(h.Waiting), Paused: h.Paused != 0,
			}
			if info.Paused {
				info.PausedUntil = rules.Instant(h.Paused)
			}
			if h.Waiting <= w.ms {
				info.OldestReady = rules.Instant(h.Waiting)
				ready, at = append(ready, q), append(at, i)
			}
			infos[i] = info
		}
		next, err := w.nextDue(ready)
		for i, due := range next {
			infos[at[i]].NextDue = rules.Instant(due)
		}
		return err
	})
	return infos, err
}

// nextDue returns the least due time of the scheduled messages of each queue.
func (w *work) nextDue(queues []int64) ([]int64, error) {
	if len(queues) == 0 {
		return nil, nil
	}
	ranges := make([]Range, 0, 2*len(queues))
	for _, q := range queues {
		for _, kind := range []Kind{Waiting, Ranked} {
			ranges = append(ranges, Range{Queue: q, Kind: kind, Span: after(w.ms), Most: 1})
		}
	}
	found, err := w.tx.Ranges(w.ctx, ranges)
	if err != nil {
		return nil, err
	}
	next := make([]int64, len(queues))
	for i := range next {
		next[i] = never
		for _, r := range slices.Concat(found[2*i], found[2*i+1]) {
			next[i] = min(next[i], r.Due)
		}
	}
	return next, nil
}

// after is the span of rows that end after an instant.
func after(ms int64) codec.Span {
	return codec.Span{Low: codec.Place{At: ms + 1}, High: codec.WholeList.High}
}

// Forecast counts the scheduled and ready messages of a queue by due time.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) (f engine.Forecast, err error) {
	const op = "forecast"
	if err := e.calls.Enter(ctx, op); err != nil {
		return f, err
	}
	defer e.calls.Leave()
	if err := engine.CheckForecast(name, step, span); err != nil {
		return f, err
	}
	num, err := e.number(ctx, name, true)
	if err != nil {
		return f, err
	}
	f.Buckets = make([]engine.Bucket, span/step)
	minutes := int64(step / time.Minute)
	err = e.lookWithoutLapsed(ctx, op, []int64{num}, func(w *work) error {
		first := rules.MinuteOf(w.ms)
		for i := range f.Buckets {
			f.Buckets[i] = engine.Bucket{From: rules.Instant((first + int64(i)*minutes) * rules.MinuteMillis)}
		}
		due, err := w.tx.Due(w.ctx, num, first+int64(len(f.Buckets))*minutes)
		f.Overdue = 0
		for _, t := range due {
			if t.Minute < first {
				f.Overdue += t.N
			} else {
				f.Buckets[(t.Minute-first)/minutes].Count += t.N
			}
		}
		return err
	})
	return f, err
}
