package sqlengine

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// Pause stops leases and claims of a queue for d; 0: until Resume.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	if err := engine.CheckPause(name, d); err != nil {
		return err
	}
	return e.onQueue(ctx, "pause", name, true, func(w *work, h *queue) {
		was := h.Paused
		h.Paused = never
		if d > 0 {
			h.Paused = engine.When{In: d}.Resolve(w.now)
		}
		if h.Paused < was {
			h.soon(h.Paused)
		}
		h.dirty = true
	})
}

// Resume ends a pause, if there is one.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.onQueue(ctx, "resume", name, false, func(_ *work, h *queue) {
		if h.Paused != 0 {
			h.Paused, h.dirty = 0, true
			h.stir()
		}
	})
}

// stir makes all processes look at a queue again.
func (q *queue) stir() { q.soon(math.MinInt64) }

// onQueue is a call that runs do in a transaction that locks a queue's row.
func (e *Engine) onQueue(ctx context.Context, op, name string, create bool, do func(*work, *queue)) error {
	if err := e.calls.Enter(ctx, op); err != nil {
		return err
	}
	defer e.calls.Leave()
	num, err := e.number(ctx, name, create)
	if err != nil || num == 0 {
		return err
	}
	one := []int64{num}
	return e.do(ctx, op, one, First{Lock: one}, nil, func(w *work) error {
		do(w, w.queues[num])
		return nil
	})
}

// Purge removes the messages that were scheduled or ready when it began, and those that also
// adds. A message that is leased when the purge reaches it stays. Each chunk is a
// transaction.
func (e *Engine) Purge(ctx context.Context, name string, also engine.PurgeAlso) (gone int64, err error) {
	const op = "purge"
	if err := e.calls.Enter(ctx, op); err != nil {
		return 0, err
	}
	defer e.calls.Leave()
	num, err := e.number(ctx, name, false)
	if err != nil || num == 0 {
		return 0, err
	}
	began, _, err := e.store.Heads(ctx, nil)
	if err != nil {
		return 0, err
	}
	began = e.clock(began)
	if err := e.lapseAll(ctx, op, num); err != nil {
		return 0, err
	}
	kinds := []Kind{Waiting, Ranked}
	if also&engine.PurgeDead != 0 {
		kinds = append(kinds, Dead)
	}
	for _, kind := range kinds {
		n, err := e.inChunks(ctx, op, num, kind, func(w *work, x *row) bool {
			if x.gone || x.Kind == Leased || x.Kind == Dead && also&engine.PurgeDead == 0 || x.Created > began.UnixMicro() {
				return false
			}
			w.drop(x)
			return true
		})
		if gone += n; err != nil {
			return gone, rest(ctx, name, err)
		}
	}
	if also&engine.PurgeFinished == 0 {
		return gone, nil
	}
	n, err := e.forgetAll(ctx, num, began.UnixMilli())
	if gone += n; err == nil {
		n, err = e.unlistAll(ctx, num, began.UnixMilli())
		gone += n
	}
	return gone, rest(ctx, name, err)
}

// rest returns the error for a context that ended before the purge was complete.
func rest(ctx context.Context, name string, err error) error {
	if err != nil && ctx.Err() != nil {
		return &engine.Error{Op: "purge", Queue: name, Err: ctx.Err(), Hint: "purge again for the rest"}
	}
	return err
}

// chunk is the most rows that one transaction of a call over any number of rows changes.
const chunk = 1000

// inChunks calls do once for each row of a kind, and returns how often it returned true.
func (e *Engine) inChunks(ctx context.Context, op string, num int64, kind Kind, do func(*work, *row) bool) (n int64, err error) {
	return e.chunks(ctx, op, num, func(w *work, from codec.Place) (c chunkDone, err error) {
		rows, last, read, err := w.some(Range{Queue: num, Kind: kind, Span: codec.Span{Low: from, High: codec.WholeList.High}, Most: chunk})
		c.more, c.next = read == chunk, behind(last)
		for _, x := range w.adopt(rows) {
			if do(w, x) {
				c.n++
			}
		}
		return c, err
	})
}

// chunkDone is what a transaction of chunks did.
type chunkDone struct {
	n    int64
	more bool        // there are more rows
	next codec.Place // where to go on
}

// chunks runs do in one transaction after another until there are no more rows, and returns
// the sum of what they did.
func (e *Engine) chunks(ctx context.Context, op string, num int64, do func(w *work, from codec.Place) (chunkDone, error)) (n int64, err error) {
	c := chunkDone{more: true, next: codec.WholeList.Low}
	for c.more {
		from := c.next
		err := e.do(ctx, op, []int64{num}, First{}, nil, func(w *work) (err error) {
			c, err = do(w, from)
			return err
		})
		if err != nil {
			return n, err
		}
		if n += c.n; c.more && ctx.Err() != nil {
			return n, &engine.Error{Op: op, Err: ctx.Err()}
		}
	}
	return n, nil
}

// some reads a range without locks and then locks its rows, in order. One statement cannot do
// both: if it has to wait for locks, it returns rows that have moved meanwhile. some returns
// the rows that are left, and the number and last place of the rows in the range.
func (w *work) some(r Range) (rows []*Row, last codec.Place, read int, err error) {
	found, err := w.tx.Ranges(w.ctx, []Range{r})
	if err != nil || len(found[0]) == 0 {
		return nil, last, 0, err
	}
	ids := make([]engine.ID, len(found[0]))
	at := make(map[engine.ID]int, len(ids))
	for i, x := range found[0] {
		ids[i], at[x.ID], last = x.ID, i, x.Place()
	}
	rows, err = w.tx.ByID(w.ctx, sorted(ids), Wait, false)
	slices.SortFunc(rows, func(a, b *Row) int { return at[a.ID] - at[b.ID] })
	return rows, last, len(at), err
}

// behind is the place after last.
func behind(last codec.Place) codec.Place { return codec.Place{At: last.At, ID: last.ID + 1} }

// forgetAll forgets the memories of a queue that ended at or before began. It counts those
// that had not expired.
func (e *Engine) forgetAll(ctx context.Context, num, began int64) (n int64, err error) {
	return e.chunks(ctx, "purge", num, func(w *work, _ codec.Place) (c chunkDone, err error) {
		over, err := w.tx.Over(w.ctx, num, math.MinInt64, never, began, chunk)
		c.more = len(over) > 0
		for i := range over {
			m := &over[i]
			w.keys[m.Name] = &keyState{stored: m}
			if m.Forgotten > w.ms {
				c.n++
			}
		}
		return c, err
	})
}

// Redrive makes dead messages ready. Each chunk is a transaction.
func (e *Engine) Redrive(ctx context.Context, name string, ids []engine.ID, limit int) (out engine.Redriven, err error) {
	const op = "redrive"
	if err := e.calls.Enter(ctx, op); err != nil {
		return out, err
	}
	defer e.calls.Leave()
	num, err := e.number(ctx, name, false)
	if err != nil {
		return out, err
	}
	if num == 0 {
		return engine.Redriven{Skipped: int64(len(ids))}, nil
	}
	if len(ids) > 0 {
		for some := range slices.Chunk(ids, chunk) {
			n, err := e.redrive(ctx, num, func(w *work) ([]*Row, error) {
				var known []engine.ID
				named := make(map[engine.ID]int, len(some)) // of messages with the same key, the first named gets it
				for i, id := range some {
					if _, again := named[id]; !again && int64(id) > 0 {
						known = append(known, id)
						named[id] = i
					}
				}
				rows, err := w.tx.ByID(w.ctx, sorted(known), Wait, false)
				rows = slices.DeleteFunc(rows, func(r *Row) bool { return r.Queue != num })
				slices.SortFunc(rows, func(a, b *Row) int { return cmp.Compare(named[a.ID], named[b.ID]) })
				return rows, err
			})
			out.Redriven += n.Redriven
			out.Skipped += int64(len(some)) - n.Redriven
			if err != nil {
				return out, err
			}
		}
		return out, nil
	}
	if err := e.lapseAll(ctx, op, num); err != nil {
		return out, err
	}
	if limit <= 0 {
		limit = math.MaxInt
	}
	span, began := codec.WholeList, int64(0)
	for limit > 0 {
		read, from := 0, span
		most := min(limit, chunk)
		n, err := e.redrive(ctx, num, func(w *work) ([]*Row, error) {
			span = from
			if began == 0 {
				began = w.ms
				span.Low = codec.Place{At: w.queues[num].keeps(w.ms)}
				span.High = codec.Place{At: w.ms + 1} // excludes messages that die meanwhile
				from = span
			}
			rows, last, n, err := w.some(Range{Queue: num, Kind: Dead, Span: span, Most: most})
			if read = n; read > 0 {
				span.Low = behind(last)
			}
			return rows, err
		})
		out.Redriven += n.Redriven
		out.Skipped += n.Skipped
		if err != nil || read < most {
			return out, err
		}
		limit -= read
	}
	return out, nil
}

// redrive makes the dead among some rows ready.
func (e *Engine) redrive(ctx context.Context, num int64, read func(*work) ([]*Row, error)) (out engine.Redriven, err error) {
	err = e.do(ctx, "redrive", []int64{num}, First{}, nil, func(w *work) error {
		out = engine.Redriven{}
		rows, err := read(w)
		if err != nil {
			return err
		}
		var names []Name
		found := w.adopt(rows)
		for _, x := range found {
			if x.Kind == Dead && x.Key != "" {
				names = append(names, Name{num, x.Key})
			}
		}
		if err := w.find(names); err != nil {
			return err
		}
		if err := w.boundDead(); err != nil {
			return err
		}
		for _, x := range found {
			if x.gone || x.Kind != Dead || !w.revive(x) {
				out.Skipped++
				continue
			}
			out.Redriven++
			x.renew()
			x.wait(w.ms)
			x.Expires = never
		}
		return nil
	})
	return out, err
}
