package forward

import (
	"context"

	"github.com/tarryhq/tarry"
)

// Target is where messages are handed on to. Send fits tarry.Handle as a handler.
type Target interface {
	// Send hands a message on and returns nil once the target has it. Otherwise it returns
	// what a handler would: tarry.Bury of what the target refuses for good, with the
	// target's words; tarry.RetryIn where the target has said when to come again; any other
	// error is retried after the message's backoff. It connects when it must, so that a
	// target that is down at the start harms nobody. It ends with ctx, and after
	// Options.Timeout at the latest. It may still read the body for a moment afterwards,
	// and never changes it. It may be called from many goroutines.
	Send(ctx context.Context, m *tarry.Message[[]byte]) error

	// Close ends the connections, and waits for the Sends under way; Send fails with
	// tarry.ErrClosed from then on. Idempotent.
	Close() error
}
