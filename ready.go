package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// readyQueue is asked for where an engine cannot tell by itself whether it is ready.
const readyQueue = "readyz"

// Ready returns nil when a push, and all else, may be expected to succeed, else why not
// and what to do: ErrNoSpace when the disk is full, while leasing, settling and cancelling
// go on; ErrUnavailable when the engine has stopped or what is behind it does not answer.
// Of an engine that cannot tell it asks for a count; one that has none counts as ready.
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
