package sqlengine

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// A history is trimmed in the background, after calls that add to it or lease. A process does
// that when a message's time may be over, or when it has added enough to exceed the number:
// counting the history at each call would take too long. It only trims what it lists itself:
// a process whose URL has no history leaves that of others alone, but for one that the settings
// had and have no more.

// trimming is what this process knows about the history of a queue.
type trimming struct {
	last  time.Time   // when the last trim began; zero: the next is due
	whole time.Time   // when the last from the start of the index began
	low   codec.Place // as far as is known, none is before
	added int64       // messages that this process has added since
	room  int64       // how many more there could be
	over  int64       // when the time of the first is over
	ended bool        // the settings no longer have the history that they had
}

const (
	trimEach   = time.Second // between two trims, unless a chunk was added
	trimWhole  = time.Minute // between two from the start of the index
	trimWithin = 10 * time.Second
)

// due reports whether a trim may find something. Other processes may have added as much.
func (t *trimming) due(ms int64) bool {
	crowded := t.added > t.room/2
	if time.Since(t.last) < trimEach {
		return crowded && t.added >= chunk
	}
	return crowded || ms >= t.over || t.last.IsZero()
}

// trimsBy reports whether this process trims the history of a queue.
func (e *Engine) trimsBy(k *cached) bool {
	return e.cfg.History.Keep > 0 || k.settings != nil && k.settings.History != 0 || k.history.ended
}

// trim starts a task that trims the histories of queues, where that is due.
func (e *Engine) trim(queues []int64, ms int64) {
	if e.cfg.later != nil {
		return // the caller's transaction is no place for it
	}
	var due []int64
	e.cache.each(queues, func(q int64, k *cached) {
		if e.trimsBy(k) && k.history.due(ms) {
			due = append(due, q)
		}
	})
	if due == nil || !e.trims.CompareAndSwap(false, true) {
		return
	}
	e.tasks.Go(func() {
		defer e.trims.Store(false)
		ctx, cancel := context.WithTimeout(e.untilClose, trimWithin)
		defer cancel()
		for _, q := range due {
			e.trimQueue(ctx, q)
		}
	})
}

// trimQueue trims the history of a queue. A trim that fails is due again.
func (e *Engine) trimQueue(ctx context.Context, queue int64) {
	now := time.Now()
	var t trimming
	e.cache.one(queue, func(k *cached) {
		k.history.last = now
		if t = k.history; now.Sub(t.whole) >= trimWhole {
			t.whole, t.low = now, codec.WholeList.Low
		}
	})
	one := []int64{queue}
	for more := true; more; {
		var next trimming
		// Locked, its settings stay as they are, and no other process trims.
		err := e.do(ctx, "history", one, First{Lock: one}, nil, func(w *work) (err error) {
			next = t
			more, err = w.trim(queue, &next)
			return err
		})
		if err != nil {
			e.cache.one(queue, func(k *cached) { k.history.over = 0 })
			return
		}
		t = next
	}
	e.cache.one(queue, func(k *cached) {
		t.last, t.added, t.ended = k.history.last, k.history.added-t.added, k.history.ended && !t.ended
		k.history = t
	})
}

// trim drops a chunk of what the history of a queue lists no more. more: there may be more.
func (w *work) trim(queue int64, t *trimming) (more bool, err error) {
	stock, err := w.tx.Stock(w.ctx, []int64{queue}, 0)
	if err != nil {
		return false, err
	}
	kept := w.e.cfg.History.Of(&w.queues[queue].Settings)
	t.room = kept.Max - stock[queue].History
	from := w.listedFrom(queue)
	r := Range{Queue: queue, Kind: Finished, Span: codec.Span{Low: t.low, High: from}, Most: chunk, Lock: Skip}
	t.low = later(t.low, codec.Place{At: min(from.At, w.ms)})
	stays := Range{Queue: queue, Kind: Finished, Span: codec.Span{Low: t.low, High: codec.WholeList.High}, Most: 1}
	ranges := []Range{r, stays}
	if t.room < 0 {
		r.Span.High, r.Most = codec.WholeList.High, int(min(-t.room, chunk))
		oldest := r
		oldest.Lock = None
		ranges = []Range{oldest, r, stays}
	}
	found, err := w.tx.Ranges(w.ctx, ranges)
	if err != nil {
		return false, err
	}
	gone, first := found[len(found)-2], found[len(found)-1]
	locked := codec.WholeList.High
	if t.room < 0 {
		gone, locked = amongOldest(gone, found[0])
	}
	if len(gone) > 0 {
		w.unlist(queue, gone)
		if t.low = behind(gone[len(gone)-1].Place()); locked.Compare(t.low) < 0 {
			t.low = locked
		}
		return true, nil
	}
	if t.over = never; kept.Keep <= 0 {
		return false, nil
	}
	t.over = w.ms + rules.Millis(kept.Keep)
	for _, x := range first {
		t.low, t.over = x.Place(), x.Ends+rules.Millis(kept.Keep)
	}
	return false, nil
}

// amongOldest returns those of the free rows that are among the oldest, and where the first of
// the oldest is that others have locked: for these no younger ones go.
func amongOldest(free, oldest []*Row) (gone []*Row, locked codec.Place) {
	locked = codec.WholeList.High
	for _, x := range oldest {
		switch {
		case len(free) > 0 && free[0].ID == x.ID:
			gone, free = append(gone, x), free[1:]
		case locked == codec.WholeList.High:
			locked = x.Place()
		}
	}
	return gone, locked
}
