package tarry

import (
	"context"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Pause stops leasing and claiming from a queue for d, or until Resume when d is 0. Pushes,
// cancels and settlements continue. A second Pause replaces the first.
func (c *Client) Pause(ctx context.Context, queue string, d time.Duration) error {
	const op = "pause"
	p, err := c.pauser(ctx, op, queue)
	if err != nil {
		return err
	}
	if err := engine.CheckPause(queue, d); err != nil {
		return err
	}
	return fail(op, Ref{Queue: queue}, p.Pause(ctx, queue, d))
}

// Resume ends a pause, if there is one.
func (c *Client) Resume(ctx context.Context, queue string) error {
	const op = "resume"
	p, err := c.pauser(ctx, op, queue)
	if err != nil {
		return err
	}
	return fail(op, Ref{Queue: queue}, p.Resume(ctx, queue))
}

func (c *Client) pauser(ctx context.Context, op, queue string) (engine.Pauser, error) {
	if err := c.operate(ctx, op, queue); err != nil {
		return nil, err
	}
	p, ok := c.eng.(engine.Pauser)
	return p, c.able(ok && c.caps.Pause, op, queue, op)
}

// Purge removes the messages that were scheduled or ready when it began. PurgeDead adds
// dead messages, PurgeFinished the remembered finished ones. It never removes leased
// messages, and what it removes is not remembered. It returns how many are gone, also when
// it fails midway.
func (c *Client) Purge(ctx context.Context, queue string, also PurgeAlso) (int64, error) {
	const op = "purge"
	if err := c.operate(ctx, op, queue); err != nil {
		return 0, err
	}
	p, ok := c.eng.(engine.Purger)
	if err := c.able(ok && c.caps.Purge, op, queue, op); err != nil {
		return 0, err
	}
	if also&PurgeFinished != 0 && !c.caps.Remember {
		return 0, c.able(false, op, queue, "remember")
	}
	n, err := p.Purge(ctx, queue, also)
	return n, fail(op, Ref{Queue: queue}, err)
}

// Redrive makes dead messages ready again, with attempt 0: those with the given ids, or
// without ids the limit oldest by death (0: all). A message is skipped when a live one
// holds its key.
func (c *Client) Redrive(ctx context.Context, queue string, ids []ID, limit int) (Redriven, error) {
	const op = "redrive"
	if err := c.operate(ctx, op, queue); err != nil {
		return Redriven{}, err
	}
	if err := engine.CheckRedrive(queue, ids, limit); err != nil {
		return Redriven{}, err
	}
	r, ok := c.eng.(engine.Redriver)
	if err := c.able(ok && c.caps.Redrive, op, queue, op); err != nil {
		return Redriven{}, err
	}
	n, err := r.Redrive(ctx, queue, ids, limit)
	return n, fail(op, Ref{Queue: queue}, err)
}

func (c *Client) operate(ctx context.Context, op, queue string) error {
	if err := c.begin(ctx, op, queue); err != nil {
		return err
	}
	return engine.CheckQueue(op, queue)
}
