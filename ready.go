package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// readyQueue is the queue that Ready counts on an engine without a readiness check.
const readyQueue = "readyz"

// Ready returns nil when a push, and any other call, can be expected to succeed; else an
// error that says why not and what to do. ErrNoSpace: the disk is full, while leasing,
// settling and cancelling go on. ErrUnavailable: the engine has stopped, or its store does
// not answer. On an engine without a readiness check Ready counts a queue; an engine that
// cannot count is taken to be ready.
func (c *Client) Ready(ctx context.Context) error {
	const op = "ready"
	if err := c.begin(ctx, op, ""); err != nil {
		return err
	}
	if r, ok := c.Engine().(engine.Readier); ok {
		if c.seam != nil {
			_, err := leaving(ctx, &c.seam.calls, 0, nil, func() (struct{}, error) { return struct{}{}, r.Ready(ctx) })
			return fail(op, Ref{}, err)
		}
		return fail(op, Ref{}, r.Ready(ctx))
	}
	if !c.caps.Count {
		return nil
	}
	_, err := c.Queue(ctx, readyQueue)
	return err
}
