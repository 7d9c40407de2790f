package memengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// List returns a page of the messages of a queue in one state. It sorts the
// messages of the minutes that the page touches, under the queue's lock.
func (e *Engine) List(ctx context.Context, lq engine.ListQuery) (engine.Page, error) {
	if err := lq.Check(); err != nil {
		return engine.Page{}, err
	}
	span, err := codec.SpanOf(&lq)
	if err != nil {
		return engine.Page{}, err
	}
	var page engine.Page
	err = e.call(ctx, "list", lq.Queue, false, func(q *queue) {
		if oldest := q.oldestDead(); lq.State == engine.Dead && span.Low.Compare(oldest) < 0 {
			span.Low = oldest
		}
		found := q.states[lq.State].page(span, lq.Newest, lq.Limit+1)
		a := answer{queue: q.name, left: len(found)}
		page.Messages = make([]engine.Info, 0, min(len(found), lq.Limit))
		bytes := 0
		var last *message
		for _, m := range found {
			if len(page.Messages) == lq.Limit || bytes >= engine.AnswerBytes {
				page.Next = last.listed().Cursor(&lq)
				break
			}
			var i engine.Info
			a.whole(&i, m, lq.Body)
			page.Messages = append(page.Messages, i)
			bytes += len(i.Body)
			last = m
		}
	})
	return page, err
}
