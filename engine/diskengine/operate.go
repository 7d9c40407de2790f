package diskengine

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/tarryhq/tarry/engine"
)

// Pause stops leasing and claiming of a queue, for good when d is 0.
func (e *Engine) Pause(ctx context.Context, name string, d time.Duration) error {
	if err := engine.CheckPause(name, d); err != nil {
		return err
	}
	return e.do(ctx, "pause", func(now clock, p *pending) error {
		q, err := e.lockQueue(name)
		if err != nil {
			return err
		}
		defer q.mu.Unlock()
		until := int64(forGood)
		if d > 0 {
			until = now.after(d)
		}
		return q.setPause(now, p, until)
	})
}

// Resume ends a pause.
func (e *Engine) Resume(ctx context.Context, name string) error {
	return e.do(ctx, "resume", func(now clock, p *pending) error {
		q := e.queue(name)
		if q == nil {
			return nil
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.gone {
			return nil
		}
		return q.setPause(now, p, 0)
	})
}

// setPause writes until when a queue is paused; 0 ends the pause.
func (q *queue) setPause(now clock, p *pending, until int64) error {
	b := q.e.store.db.NewBatch()
	key := appendHead(nil, kindPause, q.num)
	var err error
	if until == 0 {
		err = b.Delete(key, nil)
	} else {
		err = b.Set(key, appendTime(nil, until), nil)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := q.applyAlone(p, b); err != nil {
		return err
	}
	q.pause = until
	q.told = now.ms
	p.hints = append(p.hints, q.name) // it may end sooner than was said
	return nil
}

// applyAlone applies a batch that changes no message.
func (q *queue) applyAlone(p *pending, b *pebble.Batch) error {
	a, err := q.e.store.apply(b, synced)
	if err != nil {
		return err
	}
	p.batches = append(p.batches, a)
	q.seq = a.seq
	return nil
}
