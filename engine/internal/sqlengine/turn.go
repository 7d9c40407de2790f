package sqlengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
)

// turn is that of leases from queues of which looks take their time: there is one. Leases at
// the same time would pass over what the others hold, to the ends of what has come, and what
// is first would stand ever farther behind what has gone.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// await waits for the turn, which is over with done.
func (t turn) await(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, &engine.Error{Op: "lease", Err: context.Cause(ctx)}
	}
}
