package memengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Queue returns what one queue holds.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	if err := e.calls.Enter(ctx, "queue"); err != nil {
		return engine.QueueInfo{}, err
	}
	defer e.calls.Leave()
	info, _ := e.count(name)
	return info, nil
}

// Queues returns the queues that hold messages, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	if err := e.calls.Enter(ctx, "queues"); err != nil {
		return nil, "", err
	}
	defer e.calls.Leave()
	if err := engine.CheckLimit("queues", "", limit); err != nil {
		return nil, "", err
	}
	for {
		e.mu.RLock()
		some := e.names.After(nil, after, min(limit+1, engine.MaxPage))
		e.mu.RUnlock()
		if len(some) == 0 {
			return queues, "", nil
		}
		for _, name := range some {
			after = name
			info, configured := e.count(name)
			if info.Scheduled+info.Ready+info.Leased+info.Dead+info.Finished+info.History == 0 && !info.Paused && !configured {
				continue
			}
			if len(queues) == limit {
				return queues, queues[limit-1].Queue, nil
			}
			queues = append(queues, info)
		}
	}
}

// count returns what a queue holds, and whether it has settings. The call is already
// admitted.
func (e *Engine) count(name string) (info engine.QueueInfo, configured bool) {
	info.Queue = name
	e.with(name, false, func(q *queue) {
		configured = q.settings != nil && !q.settings.Unset()
		info.Scheduled = int64(q.states[engine.Scheduled].n)
		info.Ready = int64(q.states[engine.Ready].n)
		info.Leased = int64(q.states[engine.Leased].n)
		info.Dead = int64(q.states[engine.Dead].n)
		if q.finished != nil {
			info.Finished = int64(q.finished.n)
		}
		if q.history != nil {
			info.History = int64(q.history.list.n)
		}
		info.NextDue = rules.Instant(q.scheduled.next())
		if info.Ready > 0 {
			info.OldestReady = rules.Instant(q.oldest())
		}
		if info.Paused = q.paused; q.paused {
			info.PausedUntil = rules.Instant(q.until)
		}
	})
	return info, configured
}

// Forecast counts the scheduled and ready messages of a queue by due time.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) (f engine.Forecast, err error) {
	if err := e.calls.Enter(ctx, "forecast"); err != nil {
		return f, err
	}
	defer e.calls.Leave()
	if err := engine.CheckForecast(name, step, span); err != nil {
		return f, err
	}
	f.Buckets = make([]engine.Bucket, span/step)
	minutes := int64(step / time.Minute)
	first := rules.MinuteOf(e.now().UnixMilli())
	e.with(name, false, func(q *queue) {
		first = rules.MinuteOf(q.ms)
		for _, s := range []engine.State{engine.Scheduled, engine.Ready} {
			for at, bucket := range q.states[s].buckets() {
				switch n := (at - first) / minutes; {
				case at < first:
					f.Overdue += int64(bucket.n)
				case n < int64(len(f.Buckets)):
					f.Buckets[n].Count += int64(bucket.n)
				}
			}
		}
	})
	for i := range f.Buckets {
		f.Buckets[i].From = rules.Instant((first + int64(i)*minutes) * rules.MinuteMillis)
	}
	return f, nil
}
