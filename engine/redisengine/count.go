package redisengine

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry/engine"
)

// Queue returns what one queue holds. Redis counts the members of a sorted set between two
// scores, so no separate counters are needed.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	if err := e.calls.Enter(ctx, "queue"); err != nil {
		return engine.QueueInfo{}, err
	}
	defer e.calls.Leave()
	infos, err := e.counts(ctx, []string{name})
	return infos[0].QueueInfo, fault("queue", name, err)
}

// partShards is the number of shards that are asked in one round trip.
const partShards = 500

// inParts yields the shards of some queues at a time, and the index of the queue of each.
func (e *Engine) inParts(names []string) iter.Seq2[[]*shard, []int] {
	return func(yield func([]*shard, []int) bool) {
		step := max(1, partShards/e.shards)
		for from := 0; from < len(names); from += step {
			var shards []*shard
			var which []int
			for n := from; n < min(from+step, len(names)); n++ {
				for _, s := range e.queue(names[n]).shards {
					shards, which = append(shards, s), append(which, n)
				}
			}
			if !yield(shards, which) {
				return
			}
		}
	}
}

// counted is what a queue holds, and the newest settings found on its shards.
type counted struct {
	engine.QueueInfo
	settings *configured
	history  bool // it has finished messages, which others may list
}

// counts counts queues, many in each round trip. It updates shards that have older settings
// than the others of their queue.
func (e *Engine) counts(ctx context.Context, names []string) ([]counted, error) {
	infos := make([]counted, len(names))
	for shards, which := range e.inParts(names) {
		for _, n := range which {
			infos[n].Queue = names[n]
		}
		has := make([]*configured, len(shards))
		err := e.eachShard(ctx, shards, countScript, nil, func(i int, a answer) error {
			info := &infos[which[i]]
			if err := addCount(&info.QueueInfo, a.values); err != nil {
				return err
			}
			if n, _ := a.values[11].AsInt64(); n > 0 {
				info.history = true
			}
			c, err := readSettings(&a.values[10])
			if err != nil {
				return err
			}
			has[i] = c
			if c.newer(info.settings) {
				info.settings = c
			}
			return nil
		})
		if err != nil {
			return infos, err
		}
		for i, s := range shards {
			if newest := infos[which[i]].settings; newest.newer(has[i]) {
				_ = e.bring(ctx, []*shard{s}, newest) // on failure the next count tries again
			}
		}
	}
	return infos, nil
}

// addCount adds a shard's counts to those of its queue.
func addCount(info *engine.QueueInfo, values []rueidis.RedisMessage) error {
	if len(values) != 12 {
		return errAnswer
	}
	for i, to := range []*int64{&info.Scheduled, &info.Ready, &info.Leased, &info.Dead, &info.Finished, &info.History} {
		n, err := values[1+i].AsInt64()
		if err != nil {
			return errAnswer
		}
		*to += n
	}
	for i, to := range []*time.Time{&info.NextDue, &info.OldestReady} {
		if ms, err := values[7+i].AsInt64(); err == nil {
			if t := time.UnixMilli(ms).UTC(); to.IsZero() || t.Before(*to) {
				*to = t
			}
		}
	}
	if values[9].IsNil() {
		return nil
	}
	info.Paused = true
	if ms, err := values[9].AsInt64(); err == nil {
		info.PausedUntil = time.UnixMilli(ms).UTC()
	}
	return nil
}

// Queues lists the queues that hold messages, are paused or have settings, by name.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	if err := e.calls.Enter(ctx, "queues"); err != nil {
		return nil, "", err
	}
	defer e.calls.Leave()
	if err := engine.CheckLimit("queues", "", limit); err != nil {
		return nil, "", err
	}
	for {
		chunk := min(limit+1, engine.MaxPage)
		names, err := e.names(ctx, after, chunk)
		if err != nil {
			return nil, "", fault("queues", "", err)
		}
		infos, err := e.counts(ctx, names)
		if err != nil {
			return nil, "", fault("queues", "", err)
		}
		e.forgetEmpty(ctx, infos)
		for _, info := range infos {
			after = info.Queue
			switch {
			case isEmpty(&info):
			case len(queues) == limit:
				return queues, queues[limit-1].Queue, nil
			default:
				queues = append(queues, info.QueueInfo)
			}
		}
		if len(names) < chunk {
			return queues, "", nil
		}
	}
}

// scriptSteps is the number of forecast buckets that one script counts.
const scriptSteps = 1000

// Forecast counts the scheduled and ready messages of a queue by due time.
func (e *Engine) Forecast(ctx context.Context, name string, step, span time.Duration) (f engine.Forecast, err error) {
	if err := e.calls.Enter(ctx, "forecast"); err != nil {
		return f, err
	}
	defer e.calls.Leave()
	if err := engine.CheckForecast(name, step, span); err != nil {
		return f, err
	}
	now, err := e.now(ctx)
	if err != nil {
		return f, fault("forecast", name, err)
	}
	f.Buckets = make([]engine.Bucket, span/step)
	for i := range f.Buckets {
		f.Buckets[i].From = now.Truncate(time.Minute).Add(time.Duration(i) * step)
	}
	for from := 0; from < len(f.Buckets); from += scriptSteps {
		part := f.Buckets[from:min(from+scriptSteps, len(f.Buckets))]
		args := []string{strconv.FormatInt(part[0].From.UnixMilli(), 10), strconv.FormatInt(step.Milliseconds(), 10), strconv.Itoa(len(part))}
		err := e.eachShard(ctx, e.queue(name).shards, forecastScript, args, func(_ int, a answer) error {
			if len(a.values) != 2+len(part) {
				return errAnswer
			}
			for i := range 1 + len(part) {
				n, err := a.values[1+i].AsInt64()
				switch {
				case err != nil:
					return errAnswer
				case i > 0:
					part[i-1].Count += n
				case from == 0:
					f.Overdue += n
				}
			}
			return nil
		})
		if err != nil {
			return engine.Forecast{}, fault("forecast", name, err)
		}
	}
	return f, nil
}
