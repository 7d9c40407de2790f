package diskengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// countMost bounds how many due entries a count of one minute looks at. It is
// only needed while memory does not hold all that is due.
const countMost = 1 << 18

// Queue tells what one queue holds. While more is due than memory holds, and more
// than 262,144 messages fall due in what remains of the current minute, some of
// those are counted as ready; messages past their expiry count until a Lease or a
// call that names them meets them.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	info := engine.QueueInfo{Queue: name}
	err := e.do(ctx, "queue", func(now clock, p *pending) (err error) {
		if q := e.queue(name); q != nil {
			info, err = q.describe(ctx, now, p)
		}
		return err
	})
	if err != nil {
		return engine.QueueInfo{}, err
	}
	return info, nil
}

// Queues lists by name what holds something or is paused.
func (e *Engine) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	var infos []engine.QueueInfo
	var next string
	err := e.do(ctx, "queues", func(now clock, p *pending) error {
		names, err := e.namesBehind(after)
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := e.queue(name).describe(ctx, now, p)
			if err != nil {
				return err
			}
			if info.Scheduled+info.Ready+info.Leased+info.Dead == 0 && !info.Paused {
				continue
			}
			if len(infos) == max(1, limit) {
				next = infos[len(infos)-1].Queue
				return nil
			}
			infos = append(infos, info)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return infos, next, nil
}

func (q *queue) describe(ctx context.Context, now clock, p *pending) (engine.QueueInfo, error) {
	defer q.mu.Unlock()
	now, err := q.lockWhole(ctx, now, p)
	if err != nil {
		return engine.QueueInfo{}, err
	}
	p.see(q)
	info := engine.QueueInfo{Queue: q.name, Leased: q.counts.leased, Dead: q.counts.dead, Paused: q.paused(now.ms)}
	if info.Paused && q.pause != forGood {
		info.PausedUntil = instant(q.pause)
	}
	if info.Ready, err = q.ready(now.ms); err != nil {
		return info, err
	}
	info.Scheduled = q.counts.waiting - info.Ready
	if info.Ready > 0 {
		first, err := q.first(q.mark)
		if err != nil {
			return info, err
		}
		info.OldestReady = first
	}
	if info.Scheduled > 0 {
		if at, ok := q.near.next(); ok {
			info.NextDue = instant(at)
		} else if info.NextDue, err = q.first(position{at: max(q.loadedTo.at, now.ms+1)}); err != nil {
			return info, err
		}
	}
	return info, nil
}

// first is the least due at or behind a position.
func (q *queue) first(from position) (time.Time, error) {
	chunk, _, err := q.read(from, 1)
	if err != nil || len(chunk) == 0 {
		return time.Time{}, err
	}
	return instant(chunk[0].at), nil
}

// ready counts what is due: from memory when that holds all of it, else from the
// counts by minute, less what is still to come in this one.
func (q *queue) ready(now int64) (int64, error) {
	if q.loadedTo.at > now {
		return int64(len(q.near.ready)), nil
	}
	var n int64
	err := q.minutes(minuteOf(q.mark.at), minuteOf(now)+1, func(_, count int64) { n += count })
	if err != nil {
		return 0, err
	}
	lower := timeKey(nil, kindDue, q.num, position{at: now + 1})
	upper := timeKey(nil, kindDue, q.num, position{at: (minuteOf(now) + 1) * 60_000})
	if string(lower) >= string(upper) {
		return n, nil
	}
	seen := 0
	err = scan(q.e.store.db, lower, upper, func(_, _ []byte) (bool, error) {
		seen++
		return seen < countMost, nil
	})
	return n - int64(seen), err
}

// minutes calls fn for the minutes of due in which messages wait, from first up to
// but without end.
func (q *queue) minutes(first, end int64, fn func(minute, count int64)) error {
	lower, upper := minuteKey(nil, q.num, first), minuteKey(nil, q.num, end)
	if string(lower) >= string(upper) {
		return nil
	}
	return scan(q.e.store.db, lower, upper, func(k, v []byte) (bool, error) {
		_, minute, err := parseMinuteKey(k)
		if err != nil {
			return false, err
		}
		count, err := parseSum(v)
		if err == nil && count != 0 {
			fn(minute, count)
		}
		return true, err
	})
}

// namesBehind returns the names of the queues in order, behind after.
func (e *Engine) namesBehind(after string) ([]string, error) {
	var names []string
	lower := append([]byte{kindQueue}, after...)
	if after != "" {
		lower = append(lower, 0)
	}
	err := scan(e.store.db, lower, []byte{kindQueue + 1}, func(k, _ []byte) (bool, error) {
		if e.queue(string(k[1:])) != nil {
			names = append(names, string(k[1:]))
		}
		return true, nil
	})
	return names, err
}

// Forecast counts what waits by due time, from the counts by minute.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) ([]engine.Bucket, error) {
	if err := engine.CheckForecast(name, step, span); err != nil {
		return nil, err
	}
	buckets := make([]engine.Bucket, span/step)
	err := e.do(ctx, "forecast", func(now clock, p *pending) error {
		q := e.queue(name)
		first, each := minuteOf(now.ms), int64(step/time.Minute)
		if q != nil {
			defer q.mu.Unlock()
			var err error
			if now, err = q.lockWhole(ctx, now, p); err != nil {
				return err
			}
			p.see(q)
			first = minuteOf(now.ms)
			err = q.minutes(first, first+int64(len(buckets))*each, func(minute, count int64) {
				buckets[(minute-first)/each].Count += count
			})
			if err != nil {
				return err
			}
		}
		for i := range buckets {
			buckets[i].From = instant((first + int64(i)*each) * 60_000)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return buckets, nil
}
