package memengine

import (
	"context"
	"strconv"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// List returns a page of the messages of a queue in one state. It sorts the
// messages of the minutes that the page touches, under the queue's lock.
func (e *Engine) List(ctx context.Context, lq engine.ListQuery) (engine.Page, error) {
	if err := e.begin(ctx, "list"); err != nil {
		return engine.Page{}, err
	}
	defer e.end()
	if err := lq.Check(); err != nil {
		return engine.Page{}, err
	}
	after, err := parsePlace(lq.After)
	if err != nil {
		return engine.Page{}, &engine.Error{Op: "list", Queue: lq.Queue, Err: engine.ErrInvalid, Hint: "after is the next of the page before"}
	}
	var page engine.Page
	e.with(lq.Queue, false, func(q *queue) {
		found := q.states[lq.State].page(after, lq.Limit+1)
		a := answer{queue: q.name, left: len(found)}
		page.Messages = make([]engine.Info, 0, min(len(found), lq.Limit))
		bytes := 0
		var last *message
		for _, m := range found {
			if len(page.Messages) == lq.Limit || bytes >= engine.AnswerBytes {
				page.Next = place{last.end, uint64(last.id)}.String()
				break
			}
			var i engine.Info
			a.info(&i, m, lq.Body)
			page.Messages = append(page.Messages, i)
			bytes += len(i.Body)
			last = m
		}
	})
	return page, nil
}

// String is a place as a cursor.
func (p place) String() string {
	return strconv.FormatInt(p.end, 36) + "." + strconv.FormatUint(p.id, 36)
}

// parsePlace reads the form that String writes; nil for "".
func parsePlace(s string) (*place, error) {
	if s == "" {
		return nil, nil
	}
	end, id, _ := strings.Cut(s, ".")
	var p place
	var err error
	if p.end, err = strconv.ParseInt(end, 36, 64); err != nil {
		return nil, err
	}
	if p.id, err = strconv.ParseUint(id, 36, 64); err != nil {
		return nil, err
	}
	return &p, nil
}
