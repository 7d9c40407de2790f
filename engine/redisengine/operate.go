package redisengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
)

// Pause stops leases and claims of a queue for d, or until resumed if d is 0.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	if err := engine.CheckPause(name, d); err != nil {
		return err
	}
	until := "inf"
	if d > 0 {
		until = span(d)
	}
	return e.pause(ctx, "pause", name, until)
}

// Resume ends a pause. It does nothing if the queue is not paused.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.pause(ctx, "resume", name, "")
}

func (e *Engine) pause(ctx context.Context, op, name, until string) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	q := e.queue(name)
	e.note(ctx, q)
	err := e.eachShard(ctx, q.shards, pauseScript, []string{until}, func(n int, _ answer) error {
		q.shards[n].doubt()
		return nil
	})
	if err != nil {
		return fault(op, name, err)
	}
	e.watchers.Hint(name)
	return nil
}

// Purge removes the messages that were scheduled or ready when it began, and those that also
// adds. It compares creation times with the servers' clocks.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (int64, error) {
	if err := e.calls.Enter(ctx, "purge"); err != nil {
		return 0, err
	}
	defer e.calls.Leave()
	sets := []string{"due", "rare", "ready"}
	if also&engine.PurgeDead != 0 {
		sets = append(sets, "dead")
	}
	if also&engine.PurgeFinished != 0 {
		sets = append(sets, "finished", "ended")
	}
	q := e.queue(name)
	begun := make([]int64, len(q.shards)) // by each shard's clock
	err := e.eachShard(ctx, q.shards, purgeScript, []string{"", "", "", ""}, func(n int, a answer) error {
		begun[n] = a.us
		return nil
	})
	if err != nil {
		return 0, fault("purge", name, err)
	}
	var total int64
	for n, s := range q.shards {
		for _, set := range sets {
			removed, err := e.purge(ctx, s, set, begun[n])
			if total += removed; err != nil {
				return total, fault("purge", name, err)
			}
		}
	}
	return total, nil
}

// purge removes, in chunks, the messages of one set of a shard that were created until an
// instant in microseconds.
func (e *Engine) purge(ctx context.Context, s *shard, set string, until int64) (total int64, err error) {
	at, id := "", ""
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		a := e.ask1(ctx, purgeScript, s, set, string(appendInt(nil, until)), at, id)
		if a.err != nil {
			return total, a.err
		}
		if len(a.values) == 0 {
			return total, errAnswer
		}
		n, _ := a.values[0].AsInt64()
		if total += n; len(a.values) < 3 {
			return total, nil
		}
		at, _ = a.values[1].ToString()
		id, _ = a.values[2].ToString()
	}
}

// redrivePage is the number of dead messages redriven at a time.
const redrivePage = 500

// Redrive makes dead messages ready.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (engine.Redriven, error) {
	if err := e.calls.Enter(ctx, "redrive"); err != nil {
		return engine.Redriven{}, err
	}
	defer e.calls.Leave()
	q := e.queue(name)
	var out engine.Redriven
	if len(ids) > 0 {
		err := e.redrive(ctx, q, ids, &out)
		return out, fault("redrive", name, err)
	}
	span := codec.WholeList
	for left := limit; limit <= 0 || left > 0; {
		page := redrivePage
		if limit > 0 {
			page = min(page, left)
		}
		places, err := e.places(ctx, q, engine.Dead, span, false, page)
		if err != nil {
			return out, fault("redrive", name, err)
		}
		dead := make([]engine.ID, len(places))
		for i, p := range places {
			dead[i] = p.ID
			span.Low = codec.Place{At: p.At, ID: p.ID + 1}
		}
		if err := e.redrive(ctx, q, dead, &out); err != nil {
			return out, fault("redrive", name, err)
		}
		if left -= len(places); len(places) < page {
			break
		}
	}
	return out, nil
}

// redrive makes dead messages ready by id and counts them.
func (e *Engine) redrive(ctx context.Context, q *queue, ids []engine.ID, out *engine.Redriven) error {
	for n, which := range calls.GroupBy(len(ids), func(i int) int { return shardOf(ids[i]) }) {
		if n >= len(q.shards) {
			out.Skipped += int64(len(which))
			continue
		}
		s := q.shards[n]
		for chunk := range slices.Chunk(which, redrivePage) {
			members := make([]string, len(chunk))
			for k, i := range chunk {
				members[k] = member(ids[i])
			}
			a := e.ask1(ctx, redriveScript, s, members...)
			if a.err == nil && len(a.values) != 1+len(chunk) {
				a.err = errAnswer
			}
			if a.err != nil {
				return a.err
			}
			for _, v := range a.values[1:] {
				if ok, _ := v.AsInt64(); ok == 1 {
					out.Redriven++
				} else {
					out.Skipped++
				}
			}
			e.soon(s, &a.values[0])
		}
	}
	return nil
}
