package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
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

// Queues lists by name what holds something, is paused or has settings.
func (e *Engine) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	if err := engine.CheckLimit("queues", "", limit); err != nil {
		return nil, "", err
	}
	var infos []engine.QueueInfo
	var next string
	err := e.do(ctx, "queues", func(now clock, p *pending) error {
		lower := append([]byte{kindQueue}, after...)
		if after != "" {
			lower = append(lower, 0)
		}
		return scan(e.store.db, lower, []byte{kindQueue + 1}, func(k, _ []byte) (bool, error) {
			q := e.queue(string(k[1:]))
			if q == nil {
				return true, nil
			}
			info, err := q.describe(ctx, now, p)
			if err != nil {
				return false, err
			}
			if info.Scheduled+info.Ready+info.Leased+info.Dead+info.Finished == 0 && !info.Paused && !q.configured() {
				return true, nil
			}
			if len(infos) == limit {
				next = infos[len(infos)-1].Queue
				return false, nil
			}
			infos = append(infos, info)
			return true, nil
		})
	})
	if err != nil {
		return nil, "", err
	}
	return infos, next, nil
}

// view is what a queue held at one moment. What memory does not know is read from a
// snapshot, so that nobody waits for it.
type view struct {
	q         *queue
	snap      *pebble.Snapshot // nil: nothing waited
	now       int64
	mark      position
	loadedTo  position
	ready     int64 // in memory
	allReady  bool  // and nowhere else
	next      int64 // the least due in memory that lies ahead
	nextKnown bool
}

// view brings a queue up to date and takes a view of it. The caller closes it.
func (q *queue) view(ctx context.Context, now clock, p *pending, info *engine.QueueInfo) (*view, error) {
	defer q.mu.Unlock()
	now, err := q.lockWhole(ctx, now, p)
	if err != nil {
		return nil, err
	}
	p.see(q)
	*info = engine.QueueInfo{
		Queue: q.name, Scheduled: q.counts.waiting, Leased: q.counts.leased, Dead: q.counts.dead, Finished: q.counts.finished, Paused: q.paused(now.ms),
	}
	if info.Paused && q.pause != forGood {
		info.PausedUntil = instant(q.pause)
	}
	v := &view{
		q: q, now: now.ms, mark: q.mark, loadedTo: q.loadedTo,
		ready: int64(len(q.near.ready)), allReady: q.whole() || q.loadedTo.at > now.ms,
	}
	v.next, v.nextKnown = q.near.next()
	if q.counts.waiting > 0 {
		v.snap = q.e.store.db.NewSnapshot()
	}
	return v, nil
}

func (v *view) close() error {
	if v.snap == nil {
		return nil
	}
	return v.snap.Close()
}

func (q *queue) describe(ctx context.Context, now clock, p *pending) (info engine.QueueInfo, err error) {
	v, err := q.view(ctx, now, p, &info)
	if err != nil || v.snap == nil {
		return info, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if info.Ready, err = v.countReady(); err != nil {
		return info, err
	}
	if info.Scheduled -= info.Ready; info.Scheduled > 0 {
		if v.nextKnown {
			info.NextDue = instant(v.next)
		} else if info.NextDue, err = v.first(position{at: max(v.loadedTo.at, v.now+1)}); err != nil {
			return info, err
		}
	}
	if info.Ready > 0 {
		info.OldestReady, err = v.first(v.mark)
	}
	return info, err
}

// first is the least due at or behind a position.
func (v *view) first(from position) (time.Time, error) {
	chunk, _, err := v.q.readDue(v.snap, from, lastPosition, 1)
	if err != nil || len(chunk) == 0 {
		return time.Time{}, err
	}
	return instant(chunk[0].at), nil
}

// countReady counts what is due: from memory when that holds all of it, else from
// the counts by minute, less what is still to come in this one.
func (v *view) countReady() (int64, error) {
	if v.allReady {
		return v.ready, nil
	}
	var n int64
	err := v.minutes(minuteOf(v.mark.at), minuteOf(v.now)+1, func(_, count int64) { n += count })
	if err != nil {
		return 0, err
	}
	lower := timeKey(nil, kindDue, v.q.num, position{at: v.now + 1})
	upper := timeKey(nil, kindDue, v.q.num, position{at: (minuteOf(v.now) + 1) * 60_000})
	if string(lower) >= string(upper) {
		return n, nil
	}
	seen := 0
	err = scan(v.snap, lower, upper, func(_, _ []byte) (bool, error) {
		seen++
		return seen < countMost, nil
	})
	return n - int64(seen), err
}

// minutes calls fn for the minutes of due in which messages wait, from first up to
// but without end.
func (v *view) minutes(first, end int64, fn func(minute, count int64)) error {
	lower, upper := minuteKey(nil, v.q.num, first), minuteKey(nil, v.q.num, end)
	if string(lower) >= string(upper) {
		return nil
	}
	return scan(v.snap, lower, upper, func(k, value []byte) (bool, error) {
		_, minute, err := parseMinuteKey(k)
		if err != nil {
			return false, err
		}
		count, err := parseSum(value)
		if err == nil && count != 0 {
			fn(minute, count)
		}
		return true, err
	})
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
			var info engine.QueueInfo
			v, err := q.view(ctx, now, p, &info)
			if err != nil {
				return err
			}
			first = minuteOf(v.now)
			if v.snap != nil {
				err = v.minutes(first, first+int64(len(buckets))*each, func(minute, count int64) {
					buckets[(minute-first)/each].Count += count
				})
			}
			if err = errors.Join(err, v.close()); err != nil {
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
