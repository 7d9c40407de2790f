package httpengine

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// List returns one page of a queue's messages in one state.
func (e *Engine) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	v := url.Values{"state": {q.State.String()}, "limit": {strconv.Itoa(q.Limit)}, "body": {strconv.FormatBool(q.Body)}}
	if q.After != "" {
		v.Set("after", q.After)
	}
	b, err := e.do(ctx, call{op: "list", ref: engine.Ref{Queue: q.Queue}, method: http.MethodGet,
		path: queuePath(q.Queue) + "/messages", query: v.Encode()})
	if err != nil {
		return engine.Page{}, err
	}
	defer b.free()
	var p engine.Page
	err = read(b.b, func(c *cursor) {
		c.object(func(name string) {
			switch name {
			case "messages":
				c.array(func() { p.Messages = append(p.Messages, c.info().Info) })
			case "next":
				p.Next = c.text()
			default:
				c.skip()
			}
		})
	})
	return p, err
}

// Queue tells what one queue holds.
func (e *Engine) Queue(ctx context.Context, queue string) (engine.QueueInfo, error) {
	b, err := e.do(ctx, call{op: "count", ref: engine.Ref{Queue: queue}, method: http.MethodGet, path: queuePath(queue)})
	if err != nil {
		return engine.QueueInfo{}, err
	}
	defer b.free()
	var q engine.QueueInfo
	err = read(b.b, func(c *cursor) { q = c.queue() })
	return q, err
}

// Queues lists by name the queues that hold something or are paused.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	v := url.Values{"limit": {strconv.Itoa(limit)}}
	if after != "" {
		v.Set("after", after)
	}
	b, err := e.do(ctx, call{op: "count", method: http.MethodGet, path: "/v1/queues", query: v.Encode()})
	if err != nil {
		return nil, "", err
	}
	defer b.free()
	err = read(b.b, func(c *cursor) {
		c.object(func(name string) {
			switch name {
			case "queues":
				c.array(func() { queues = append(queues, c.queue()) })
			case "next":
				next = c.text()
			default:
				c.skip()
			}
		})
	})
	return queues, next, err
}

func (c *cursor) queue() (q engine.QueueInfo) {
	c.object(func(name string) {
		switch name {
		case "queue":
			q.Queue = c.text()
		case "scheduled":
			q.Scheduled = c.number()
		case "ready":
			q.Ready = c.number()
		case "leased":
			q.Leased = c.number()
		case "dead":
			q.Dead = c.number()
		case "next_due":
			q.NextDue = c.time()
		case "oldest_ready":
			q.OldestReady = c.time()
		case "paused":
			q.Paused = c.flag()
		case "paused_until":
			q.PausedUntil = c.time()
		default:
			c.skip()
		}
	})
	return q
}

// Forecast counts messages by due time.
func (e *Engine) Forecast(ctx context.Context, queue string, step, span time.Duration) ([]engine.Bucket, error) {
	v := url.Values{"step": {step.String()}, "span": {span.String()}}
	b, err := e.do(ctx, call{op: "forecast", ref: engine.Ref{Queue: queue}, method: http.MethodGet,
		path: queuePath(queue) + "/forecast", query: v.Encode()})
	if err != nil {
		return nil, err
	}
	defer b.free()
	var buckets []engine.Bucket
	err = read(b.b, func(c *cursor) {
		c.object(func(name string) {
			if name != "buckets" {
				c.skip()
				return
			}
			c.array(func() { buckets = append(buckets, c.bucket()) })
		})
	})
	return buckets, err
}

func (c *cursor) bucket() (b engine.Bucket) {
	c.object(func(name string) {
		switch name {
		case "from":
			b.From = c.time()
		case "count":
			b.Count = c.number()
		default:
			c.skip()
		}
	})
	return b
}
