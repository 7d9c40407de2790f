package tarry

import (
	"context"
	"iter"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// defaultPage is the default length of a page.
const defaultPage = 100

// Get looks a message up. By key it returns the live message, else the remembered finished
// one, else the newest dead one; by id any message that is not finished. ErrNotFound.
func (c *Client) Get(ctx context.Context, ref Ref) (Info, error) {
	const op = "get"
	if err := c.refer(ctx, op, ref, c.caps.Get); err != nil {
		return Info{}, err
	}
	info, err := c.eng.Get(ctx, ref)
	return info, fail(op, ref, err)
}

// ListPage returns one page of a queue's messages in one state, ordered by due time for
// scheduled and ready, by deadline for leased, and by time of death for dead messages. A
// message that does not change meanwhile is on exactly one page. A Limit of 0 is 100; at
// most 1000.
func (c *Client) ListPage(ctx context.Context, q ListQuery) (Page, error) {
	const op = "list"
	if err := c.begin(ctx, op, q.Queue); err != nil {
		return Page{}, err
	}
	if err := engine.CheckQueue(op, q.Queue); err != nil {
		return Page{}, err
	}
	if q.Limit == 0 {
		q.Limit = defaultPage
	}
	if err := q.Check(); err != nil {
		return Page{}, err
	}
	if err := c.caps.CheckList(&q); err != nil {
		return Page{}, err
	}
	l, ok := c.eng.(engine.Lister)
	if err := c.able(ok && (c.caps.List || c.caps.ListDead), op, q.Queue, op); err != nil {
		return Page{}, err
	}
	p, err := l.List(ctx, q)
	return p, fail(op, Ref{Queue: q.Queue}, err)
}

// List yields all messages of a queue in one state, with bodies, page by page. It stops
// after the first error. ListWhere yields a selection.
func (c *Client) List(ctx context.Context, queue string, state State) iter.Seq2[Info, error] {
	return c.ListWhere(ctx, Filter{Queue: queue, States: []State{state}, Body: true})
}

// Queue returns what a queue holds; an unknown queue is empty.
func (c *Client) Queue(ctx context.Context, queue string) (QueueInfo, error) {
	const op = "count"
	n, err := c.counter(ctx, op, queue)
	if err != nil {
		return QueueInfo{}, err
	}
	if err := engine.CheckQueue(op, queue); err != nil {
		return QueueInfo{}, err
	}
	info, err := n.Queue(ctx, queue)
	return info, fail(op, Ref{Queue: queue}, err)
}

// Queues returns the queues that hold messages or are paused, ordered by name, starting
// after the name after; next is "" at the end. A limit of 0 is 100; at most 1000.
func (c *Client) Queues(ctx context.Context, after string, limit int) (queues []QueueInfo, next string, err error) {
	const op = "count"
	n, err := c.counter(ctx, op, "")
	if err != nil {
		return nil, "", err
	}
	if limit == 0 {
		limit = defaultPage
	}
	if err := engine.CheckLimit(op, "", limit); err != nil {
		return nil, "", err
	}
	queues, next, err = n.Queues(ctx, after, limit)
	return queues, next, fail(op, Ref{}, err)
}

// AllQueues yields by name the queues that hold something or are paused. It ends after the
// first error.
func (c *Client) AllQueues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return func(yield func(QueueInfo, error) bool) {
		for after := ""; ; {
			page, next, err := c.Queues(ctx, after, engine.MaxPage)
			if err != nil {
				yield(QueueInfo{}, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			if after = next; after == "" {
				return
			}
		}
	}
}

func (c *Client) counter(ctx context.Context, op, queue string) (engine.Counter, error) {
	if err := c.begin(ctx, op, queue); err != nil {
		return nil, err
	}
	n, ok := c.eng.(engine.Counter)
	return n, c.able(ok && c.caps.Count, op, queue, "counters")
}

// Forecast counts the messages that fall due in each step, starting with the current
// minute, and the overdue ones: due before that minute. step is a whole number of minutes,
// span a whole number of steps, at most 10,000.
func (c *Client) Forecast(ctx context.Context, queue string, step, span time.Duration) (Forecast, error) {
	const op = "forecast"
	if err := c.begin(ctx, op, queue); err != nil {
		return Forecast{}, err
	}
	if err := engine.CheckQueue(op, queue); err != nil {
		return Forecast{}, err
	}
	if err := engine.CheckForecast(queue, step, span); err != nil {
		return Forecast{}, err
	}
	f, ok := c.eng.(engine.Forecaster)
	if err := c.able(ok && c.caps.Forecast, op, queue, op); err != nil {
		return Forecast{}, err
	}
	all, err := f.Forecast(ctx, queue, step, span)
	return all, fail(op, Ref{Queue: queue}, err)
}
