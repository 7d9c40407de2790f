package sqlengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// List returns a page of the messages of a queue in one state.
func (e *Engine) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	const op = "list"
	if err := e.calls.Enter(ctx, op); err != nil {
		return engine.Page{}, err
	}
	defer e.calls.Leave()
	if err := q.Check(); err != nil {
		return engine.Page{}, err
	}
	span, err := codec.SpanOf(&q)
	if err != nil {
		return engine.Page{}, err
	}
	num, err := e.number(ctx, q.Queue, false)
	if err != nil || num == 0 {
		return engine.Page{}, err
	}
	var page engine.Page
	err = e.lookWithoutLapsed(ctx, op, []int64{num}, func(w *work) (err error) {
		page, err = w.page(num, &q, span)
		return err
	})
	return page, err
}

// lookWithoutLapsed is look with the first rows of queues, after all overdue leases of these
// queues have lapsed.
func (e *Engine) lookWithoutLapsed(ctx context.Context, op string, queues []int64, fn func(*work) error) error {
	if err := e.lapseAll(ctx, op, queues...); err != nil {
		return err
	}
	return e.look(ctx, op, queues, First{Whole: true}, fn)
}

// lapseAll applies all overdue leases of queues.
func (e *Engine) lapseAll(ctx context.Context, op string, queues ...int64) error {
	for all := 1; all > 0; { // until there are none, or others are bringing them up to date
		now, heads, err := e.heads(ctx, op, lowestOf(queues))
		if err != nil {
			return err
		}
		all = 0
		for i := range heads {
			if heads[i].Leased > e.clock(now).UnixMilli() {
				continue
			}
			over, met := []int64{heads[i].Num}, 0
			err := e.do(ctx, op, over, First{Whole: true}, nil, func(w *work) error {
				err := w.lapse(over)
				met = len(w.order)
				return err
			})
			if err != nil {
				return err
			}
			all += met
		}
	}
	return nil
}

// kindsOf returns the kinds of rows that may be in a state.
func kindsOf(s engine.State) []Kind {
	switch s {
	case engine.Leased:
		return []Kind{Leased}
	case engine.Dead:
		return []Kind{Dead}
	case engine.Finished:
		return []Kind{Finished}
	}
	return []Kind{Waiting, Ranked}
}

func later(a, b codec.Place) codec.Place {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// page reads a page of the span of a list.
func (w *work) page(num int64, q *engine.ListQuery, span codec.Span) (engine.Page, error) {
	now := codec.Place{At: w.ms + 1}
	switch {
	case q.State == engine.Scheduled && span.Low.Compare(now) < 0:
		span.Low = now
	case q.State == engine.Ready && span.High.Compare(now) > 0:
		span.High = now
	case q.State == engine.Dead:
		span.Low = later(span.Low, codec.Place{At: w.queues[num].keeps(w.ms)})
	case q.State == engine.Finished:
		span.Low = later(span.Low, w.listedFrom(num))
	}
	var ranges []Range
	for _, kind := range kindsOf(q.State) {
		ranges = append(ranges, Range{Queue: num, Kind: kind, Span: span, Newest: q.Newest, Most: q.Limit + 1, Body: q.Body})
	}
	found, err := w.tx.Ranges(w.ctx, ranges)
	if err != nil {
		return engine.Page{}, err
	}
	rows := slices.Concat(found...)
	slices.SortFunc(rows, func(a, b *Row) int {
		c := a.Place().Compare(b.Place())
		if q.Newest {
			return -c
		}
		return c
	})
	var page engine.Page
	var large []*Row
	n, bytes := 0, 0
	for _, r := range rows {
		if n == q.Limit || bytes >= engine.AnswerBytes {
			page.Next = rows[n-1].Place().Cursor(q)
			break
		}
		n++
		if q.Body {
			bytes += r.Size
			if r.Size > InlineBody {
				large = append(large, r)
			}
		}
	}
	if len(large) > 0 {
		if err := w.tx.Bodies(w.ctx, large); err != nil {
			return engine.Page{}, err
		}
	}
	page.Messages = make([]engine.Info, 0, n)
	for _, r := range rows[:n] {
		page.Messages = append(page.Messages, w.info(&row{Row: *r}))
	}
	return page, nil
}
