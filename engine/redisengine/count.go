package redisengine

import (
	"context"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Queue tells what one queue holds. Redis knows how many members a sorted set has
// between two scores, so that no counters are kept beside.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	if err := e.begin(ctx, "queue"); err != nil {
		return engine.QueueInfo{}, err
	}
	defer e.end()
	info, err := e.count(ctx, name)
	return info, fault("queue", name, err)
}

// count is Queue within a call already begun.
func (e *Engine) count(ctx context.Context, name string) (engine.QueueInfo, error) {
	info := engine.QueueInfo{Queue: name}
	err := e.everyShard(ctx, e.queue(name), countScript, nil, func(_ int, a answer) error {
		if len(a.values) != 8 {
			return errAnswer
		}
		for i, to := range []*int64{&info.Scheduled, &info.Ready, &info.Leased, &info.Dead} {
			n, err := a.values[1+i].AsInt64()
			if err != nil {
				return errAnswer
			}
			*to += n
		}
		for i, to := range []*time.Time{&info.NextDue, &info.OldestReady} {
			if ms, err := a.values[5+i].AsInt64(); err == nil {
				if t := time.UnixMilli(ms).UTC(); to.IsZero() || t.Before(*to) {
					*to = t
				}
			}
		}
		if a.values[7].IsNil() {
			return nil
		}
		info.Paused = true
		if ms, err := a.values[7].AsInt64(); err == nil {
			info.PausedUntil = time.UnixMilli(ms).UTC()
		}
		return nil
	})
	return info, err
}

// Queues tells it of the queues that hold something or are paused, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	if err := e.begin(ctx, "queues"); err != nil {
		return nil, "", err
	}
	defer e.end()
	if limit < 1 {
		return nil, "", &engine.Error{Op: "queues", Err: engine.ErrInvalid, Hint: "the limit is at least 1"}
	}
	for {
		chunk := min(limit+1, engine.MaxPage)
		names, err := e.names(ctx, after, chunk)
		if err != nil {
			return nil, "", fault("queues", "", err)
		}
		var empty []string
		for _, name := range names {
			after = name
			info, err := e.count(ctx, name)
			if err != nil {
				return nil, "", fault("queues", name, err)
			}
			if info.Scheduled+info.Ready+info.Leased+info.Dead == 0 && !info.Paused {
				empty = append(empty, name)
				continue
			}
			if len(queues) == limit {
				return queues, queues[limit-1].Queue, nil
			}
			queues = append(queues, info)
		}
		e.forgetQueues(ctx, empty)
		if len(names) < chunk {
			return queues, "", nil
		}
	}
}

// scriptSteps is how many buckets of a forecast one script counts.
const scriptSteps = 1000

// Forecast counts the scheduled and ready messages of a queue by due time. Those due
// before the present minute are in no bucket.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) ([]engine.Bucket, error) {
	if err := e.begin(ctx, "forecast"); err != nil {
		return nil, err
	}
	defer e.end()
	if err := engine.CheckForecast(name, step, span); err != nil {
		return nil, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return nil, fault("forecast", name, err)
	}
	buckets := make([]engine.Bucket, span/step)
	for i := range buckets {
		buckets[i].From = now.Truncate(time.Minute).Add(time.Duration(i) * step)
	}
	for from := 0; from < len(buckets); from += scriptSteps {
		part := buckets[from:min(from+scriptSteps, len(buckets))]
		args := []string{strconv.FormatInt(part[0].From.UnixMilli(), 10), strconv.FormatInt(step.Milliseconds(), 10), strconv.Itoa(len(part))}
		err := e.everyShard(ctx, e.queue(name), forecastScript, args, func(_ int, a answer) error {
			if len(a.values) != 1+len(part) {
				return errAnswer
			}
			for i := range part {
				n, err := a.values[1+i].AsInt64()
				if err != nil {
					return errAnswer
				}
				part[i].Count += n
			}
			return nil
		})
		if err != nil {
			return nil, fault("forecast", name, err)
		}
	}
	return buckets, nil
}
