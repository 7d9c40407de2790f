package memengine

import (
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Pause stops leasing and claiming from a queue for d, or until Resume when d is 0.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	if err := engine.CheckPause(name, d); err != nil {
		return err
	}
	return e.call(ctx, "pause", name, true, func(q *queue) {
		q.paused, q.until = true, none
		if d > 0 {
			q.until = engine.When{In: d}.Resolve(q.now)
		}
	})
}

// Resume ends a pause, if there is one.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.call(ctx, "resume", name, false, func(q *queue) { q.paused = false })
}

// purgeChunk is how many messages a purge removes before it yields the lock.
const purgeChunk = 1000

// Purge removes the messages that were scheduled or ready when it began, and those that
// also adds. A message that is leased meanwhile stays.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (int64, error) {
	if err := e.calls.Enter(ctx, "purge"); err != nil {
		return 0, err
	}
	defer e.calls.Leave()
	states := []engine.State{engine.Scheduled, engine.Ready}
	if also&engine.PurgeDead != 0 {
		states = append(states, engine.Dead)
	}
	var ids []engine.ID
	var finished []turn
	e.with(name, false, func(q *queue) {
		if also&engine.PurgeFinished != 0 && q.finished != nil {
			finished = slices.Clone(q.finished.first.heap)
		}
		for _, s := range states {
			ids = q.states[s].ids(ids)
		}
		if also&engine.PurgeFinished != 0 && q.history != nil {
			ids = q.history.list.ids(ids)
		}
	})
	n, err := inChunks(ctx, e, name, ids, func(q *queue, id engine.ID) bool {
		m := q.byID(id)
		switch {
		case m != nil && m.inHistory && also&engine.PurgeFinished != 0:
			q.unlist(m)
		case m != nil && slices.Contains(states, m.state):
			q.drop(m)
		default:
			return false
		}
		return true
	})
	if err != nil {
		return n, err
	}
	forgotten, err := inChunks(ctx, e, name, finished, func(q *queue, t turn) bool {
		if q.finished == nil {
			return false
		}
		m := q.ended(&q.finished.first, t)
		if m == nil || !q.remembers(m) {
			return false
		}
		q.forget(m)
		return true
	})
	return n + forgotten, err
}

// inChunks removes the items that a purge found, and returns how many it removed.
func inChunks[T any](ctx context.Context, e *Engine, name string, found []T, remove func(*queue, T) bool) (n int64, err error) {
	for chunk := range slices.Chunk(found, purgeChunk) {
		if err := ctx.Err(); err != nil {
			return n, &engine.Error{Op: "purge", Queue: name, Err: err, Hint: "purge again for the rest"}
		}
		e.with(name, false, func(q *queue) {
			for _, x := range chunk {
				if remove(q, x) {
					n++
				}
			}
		})
	}
	return n, nil
}

// Redrive makes dead messages ready.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (engine.Redriven, error) {
	out := engine.Redriven{Skipped: int64(len(ids))}
	err := e.call(ctx, "redrive", name, false, func(q *queue) {
		var msgs []*message // nil: does not exist
		if len(ids) > 0 {
			for _, id := range ids {
				msgs = append(msgs, q.byID(id))
			}
		} else {
			dead := &q.states[engine.Dead]
			if limit <= 0 {
				limit = dead.n
			}
			msgs = dead.page(codec.Span{Low: q.oldestDead(), High: codec.WholeList.High}, false, limit)
		}
		out = engine.Redriven{}
		for _, m := range msgs {
			if q.redrive(m) {
				out.Redriven++
			} else {
				out.Skipped++
			}
		}
	})
	return out, err
}

// redrive makes a dead message ready unless another one holds its key.
func (q *queue) redrive(m *message) bool {
	if m == nil || m.state != engine.Dead || q.byKey(m.key()) != nil {
		return false
	}
	q.take(m)
	m.due = q.ms
	m.setExpires(none)
	q.renew(m)
	q.place(m)
	return true
}
