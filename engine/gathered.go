package engine

import (
	"context"
	"fmt"
)

// ErrBusy answers one item of a Gathered call that would have to wait for a transaction of
// somebody else: nothing has become of it, and it is to be handed in again a little later.
var ErrBusy = fmt.Errorf("%w: another transaction holds the message or its key", ErrUnavailable)

type gathered struct{}

// Gathered returns a context for a call to Push, Settle or Cancel whose items are of several
// callers. An engine may then answer an item with ErrBusy, so that nobody waits for what
// only another's item needs.
func Gathered(ctx context.Context) context.Context { return context.WithValue(ctx, gathered{}, true) }

// IsGathered reports whether Gathered has made a context.
func IsGathered(ctx context.Context) bool { return ctx.Value(gathered{}) != nil }
