package diskengine

import (
	"context"
	"slices"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Queue says what a queue holds.
func (e *Engine) Queue(ctx context.Context, name string) (engine.QueueInfo, error) {
	info := engine.QueueInfo{Queue: name}
	err := e.do(ctx, "queue", func(c *call) error {
		_, err := c.countQueue(name, &info)
		return err
	})
	return info, err
}

// Queues says what queues hold, in the order of names. It leaves out queues that hold nothing,
// are not paused and have no settings.
func (e *Engine) Queues(ctx context.Context, after string, limit int) (queues []engine.QueueInfo, next string, err error) {
	if err := engine.CheckLimit("queues", "", limit); err != nil {
		return nil, "", err
	}
	err = e.do(ctx, "queues", func(c *call) error {
		for {
			some := e.namesAfter(after, limit+1)
			if len(some) == 0 {
				return nil
			}
			queues = slices.Grow(queues, len(some))
			for _, name := range some {
				after = name
				queues = append(queues, engine.QueueInfo{Queue: name})
				known, err := c.countQueue(name, &queues[len(queues)-1])
				switch {
				case err != nil:
					return err
				case !known:
					queues = queues[:len(queues)-1]
				case len(queues) > limit:
					queues, next = queues[:limit], queues[limit-1].Queue
					return nil
				}
			}
		}
	})
	if err != nil {
		return nil, "", err
	}
	return queues, next, nil
}

// countQueue counts a queue, and reports whether it has anything to show.
func (c *call) countQueue(name string, info *engine.QueueInfo) (known bool, err error) {
	var t tally
	var oldest, next first
	err = c.tallied(name, &t, func(c *call) []int64 { return []int64{c.ms + 1} }, func(q *queue) error {
		known = q.live+q.dead+q.finished+q.listed > 0 || q.pause != 0 || q.settings != nil && !q.settings.Unset()
		info.Leased, info.Dead, info.Finished, info.History = q.leased, q.dead, q.finished, q.listed
		if info.Paused = q.pause != 0; info.Paused {
			info.PausedUntil = rules.Instant(q.pause)
		}
		info.Ready = t.upTo(c, q, 0)
		info.Scheduled = q.live - q.leased - info.Ready
		if info.Ready > 0 {
			due, err := c.firstFrom(q, &oldest, memtable.First)
			if err != nil {
				return err
			}
			info.OldestReady = rules.Instant(due)
		}
		if info.Scheduled > 0 {
			due, err := c.firstFrom(q, &next, memtable.Position{At: t.times[0]})
			if err != nil {
				return err
			}
			info.NextDue = rules.Instant(due)
		}
		return nil
	})
	return known, err
}

// first is a search for the first pending message of a queue, from a position on. It spans
// steps.
type first struct {
	store.Cursors
	from   memtable.Position
	walked memtable.Position // in memtables, entries before it were looked at
	begun  bool
}
