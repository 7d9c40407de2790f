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
		found := q.page(&lq, span)
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
			if m.inHistory {
				i = q.historyInfo(m)
			} else {
				a.whole(&i, m, lq.Body)
			}
			page.Messages = append(page.Messages, i)
			bytes += len(i.Body)
			last = m
		}
	})
	return page, err
}

// page returns the first limit messages of a span of a list.
func (q *queue) page(lq *engine.ListQuery, span codec.Span) []*message {
	oldest := codec.WholeList.Low
	var list *minutes
	switch {
	case lq.State != engine.Finished:
		list = &q.states[lq.State]
	case q.history == nil:
		return nil
	default:
		list, oldest = &q.history.list, q.oldestListed()
	}
	if lq.State == engine.Dead {
		oldest = q.oldestDead()
	}
	if span.Low.Compare(oldest) < 0 {
		span.Low = oldest
	}
	return list.page(span, lq.Newest, lq.Limit+1)
}
