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
		if now.Sub(k.history.whole) >= trimWhole {
			k.history.whole, k.history.low = now, codec.WholeList.Low
		}
		k.history.last, k.history.over = now, 0
		t = k.history
	})
	one := []int64{queue}
	for more := true; more; {
		var next trimming
		// Locked, its settings stay as they are, and no other process trims.
		err := e.do(ctx, "history", one, First{Lock: one}, nil, func(w *work) (err error) {
			next, more, err = w.trim(queue, t)
			return err
		})
		if err != nil {
			return
		}
		t = next
	}
	e.cache.one(queue, func(k *cached) {
		k.history.low, k.history.room, k.history.over = t.low, t.room, t.over
		k.history.added -= t.added
		k.history.ended = k.history.ended && !t.ended
	})
}

// trim drops a chunk of what the history of a queue lists no more. It leaves out rows that
// others have locked, and drops no younger ones for them. more: there may be more.
func (w *work) trim(queue int64, t trimming) (next trimming, more bool, err error) {
	stock, err := w.tx.Stock(w.ctx, []int64{queue}, 0)
	if err != nil {
		return t, false, err
	}
	kept := w.e.cfg.History.Of(&w.queues[queue].Settings)
	t.room = kept.Max - stock[queue].History
	from := w.listedFrom(queue)
	first := Range{Queue: queue, Kind: Finished, Span: codec.Span{Low: t.low, High: codec.WholeList.High}, Most: 1}
	old := first
	old.Most, old.Lock = chunk, Skip
	if t.room < 0 {
		old.Most = int(min(-t.room, chunk))
	} else {
		old.Span.High = from
	}
	old.Window = old.Most // locked rows are not replaced
	found, err := w.tx.Ranges(w.ctx, []Range{old, first})
	if err != nil {
		return t, false, err
	}
	if gone := found[0]; len(gone) > 0 {
		w.unlist(queue, gone)
		if len(gone) == old.Most { // others have locked none
			for _, x := range gone {
				t.low = later(t.low, behind(x.Place()))
			}
		}
		return t, true, nil
	}
	t.low, t.over = later(t.low, codec.Place{At: min(from.At, w.ms)}), never
	if kept.Keep > 0 {
		t.over = w.ms + rules.Millis(kept.Keep)
	}
	for _, x := range found[1] {
		t.low, t.over = x.Place(), x.Ends+rules.Millis(kept.Keep)
	}
	return t, false, nil
}
