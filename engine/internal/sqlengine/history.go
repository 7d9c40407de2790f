package sqlengine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// listedFrom returns the place from which on a queue's history lists messages; at never: it
// lists none.
func (w *work) listedFrom(queue int64) codec.Place {
	return codec.Place{At: rules.ListedFrom(w.e.cfg.History.Of(&w.queues[queue].Settings), w.ms)}
}

// lists reports whether a row is listed in the history.
func (w *work) lists(x *row) bool {
	return x.Kind == Finished && x.Place().Compare(w.listedFrom(x.Queue)) >= 0
}

// list adds a message that ended in this way to the history.
func (w *work) list(x *row, how engine.Ending, ended int64) {
	if ended < w.listedFrom(x.Queue).At {
		return
	}
	x.Kind, x.Ends, x.Ending = Finished, ended, how
	x.Content, x.Size = engine.Content{}, 0
	w.queues[x.Queue].listed++
}

// started returns when the last lease of a row began.
func (x *row) started() time.Time {
	if x.Nonce == nil {
		return time.Time{}
	}
	return rules.Instant(x.Nonce.Started())
}

// ended changes the info of a finished message to what the history shows.
func (x *row) ended(i *engine.Info) {
	i.Policy, i.Expires = engine.Policy{}, time.Time{}
	i.Ending, i.Ended = x.Ending, rules.Instant(x.Ends)
	if x.Ending == engine.Acked {
		i.Started = x.started()
	}
}

// lastEnded returns the message with a key that died or finished last, of those that are kept;
// nil: there is none.
func (w *work) lastEnded(name Name) (*row, error) {
	rows, err := w.tx.Ended(w.ctx, name, w.queues[name.Queue].keeps(w.ms), w.listedFrom(name.Queue).At)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	last := slices.MaxFunc(rows, func(a, b *Row) int { return cmp.Or(cmp.Compare(a.Ends, b.Ends), cmp.Compare(a.Kind, b.Kind)) })
	return w.adopt([]*Row{last})[0], nil
}

// finish writes rows that have finished. Of most only kind and ends have changed.
func (w *work) finish(rows []*row) {
	type end struct {
		at  int64
		how engine.Ending
		by  string
	}
	var moved []*Row
	ids := make(map[end][]engine.ID)
	for _, x := range rows {
		e := end{x.Ends, x.Ending, x.by}
		if x.Ends != w.ms || x.changed() {
			moved, e.at = append(moved, &x.Row), never
		}
		ids[e] = append(ids[e], x.ID)
	}
	w.tx.Move(w.ctx, moved)
	for e, some := range ids {
		w.tx.Finish(w.ctx, sorted(some), e.at, e.how, e.by)
	}
}

// unlist drops finished messages of a queue, whose rows are locked.
func (w *work) unlist(queue int64, rows []*Row) {
	ids := make([]engine.ID, len(rows))
	for i, x := range rows {
		ids[i] = x.ID
	}
	w.tx.Delete(w.ctx, sorted(ids))
	if len(rows) > 0 {
		w.tx.Tally(w.ctx, []Tally{{Queue: queue, Count: CountHistory, N: -int64(len(rows))}})
	}
}

// unlistAll empties the history of a queue of what ended at or before began. It counts those
// that were listed.
func (e *Engine) unlistAll(ctx context.Context, num, began int64) (n int64, err error) {
	return e.chunks(ctx, "purge", num, func(w *work, from codec.Place) (c chunkDone, err error) {
		span := codec.Span{Low: from, High: codec.Place{At: began + 1}}
		rows, last, read, err := w.some(Range{Queue: num, Kind: Finished, Span: span, Most: chunk})
		c.more, c.next = read == chunk, behind(last)
		for _, x := range rows {
			if x.Ends >= w.listedFrom(num).At {
				c.n++
			}
		}
		w.unlist(num, rows)
		return c, err
	})
}
