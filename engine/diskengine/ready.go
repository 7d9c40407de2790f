package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

var _ engine.Readier = (*Engine)(nil)

// Ready implements engine.Readier: the store must not have stopped, and the disk must answer and
// have space for more messages.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.calls.Enter(ctx, "ready"); err != nil {
		return err
	}
	defer e.calls.Leave()
	if err := e.disk.stuck(); err != nil {
		return err
	}
	return e.refused("ready")
}
