package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// PushMessage is Push for a message made by NewMessage.
func (c *Client) PushMessage(ctx context.Context, m engine.Message) (Pushed, error) {
	return c.pushOne(ctx, m)
}

// LeaseNow takes what is due and hands on the engine's answer whole: for each want
// its messages, and when there may be more. It does not wait, nor queue up behind
// those who do. Each Max is 1 to 1000. When ctx ends, what was leased is released.
func (c *Client) LeaseNow(ctx context.Context, wants []engine.Want) (engine.Grant, error) {
	const op = "lease"
	if err := c.beginBatch(ctx, op, len(wants)); err != nil {
		return engine.Grant{}, err
	}
	for _, w := range wants {
		if err := checkLease(op, LeaseRequest{Queues: []string{w.Queue}, Max: w.Max, LeaseOptions: LeaseOptions{TTR: w.TTR}}); err != nil {
			return engine.Grant{}, err
		}
	}
	g, err := c.eng.Lease(ctx, wants)
	if err != nil {
		return engine.Grant{}, fail(op, Ref{}, err)
	}
	if err := ctx.Err(); err != nil {
		for _, got := range g.Queues {
			c.dispatch.giveBack(got.Messages)
		}
		return engine.Grant{}, fail(op, Ref{}, err)
	}
	return g, nil
}
