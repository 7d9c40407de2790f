package forward

import (
	"context"

	"github.com/tarryhq/tarry"
)

// Target is a destination of messages. Send fits tarry.Handle as a handler.
type Target interface {
	// Send sends a message and returns nil once the target has it. Otherwise it returns an
	// error as a handler would: tarry.Bury if the target refuses it for good, with the
	// target's text; tarry.RetryIn if the target names a time; after any other error the
	// message is retried with its backoff. It connects when needed, so a target may be down
	// at the start. It ends with ctx, and after Options.Timeout at the latest. It may read
	// the body a moment longer, and never changes it. It is safe for concurrent use.
	Send(ctx context.Context, m *tarry.Message[[]byte]) error

	// Close waits for Sends in progress and closes the connections. Later Sends fail with
	// tarry.ErrClosed. Idempotent.
	Close() error
}
