package tarry

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// Settings returns the stored settings of a queue and their revision, for Configure. They
// are empty for a queue that was never configured.
func (c *Client) Settings(ctx context.Context, queue string) (s Settings, revision string, err error) {
	const op = "settings"
	e, err := c.configurer(ctx, op, queue)
	if err != nil {
		return Settings{}, "", err
	}
	s, revision, err = e.Settings(ctx, queue)
	return s, revision, fail(op, Ref{Queue: queue}, err)
}

// Configure replaces all settings of a queue, and returns their revision. With the revision
// that Settings returned it fails with ErrStale when the settings have changed since; with
// "" it overwrites them. ErrInvalid.
func (c *Client) Configure(ctx context.Context, queue string, s Settings, revision string) (string, error) {
	const op = "configure"
	e, err := c.configurer(ctx, op, queue)
	if err != nil {
		return "", err
	}
	if err := s.Validate(queue); err != nil {
		return "", err
	}
	if err := c.caps.CheckTerms(op, Ref{Queue: queue}, &s.Defaults); err != nil {
		return "", err
	}
	revision, err = e.Configure(ctx, queue, s, revision)
	return revision, fail(op, Ref{Queue: queue}, err)
}

func (c *Client) configurer(ctx context.Context, op, queue string) (engine.Configurer, error) {
	if err := c.operate(ctx, op, queue); err != nil {
		return nil, err
	}
	e, ok := c.eng.(engine.Configurer)
	return e, c.able(ok && c.caps.Settings, op, queue, "settings of queues")
}
