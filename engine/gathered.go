package engine

import (
	"context"
	"fmt"
)

// ErrBusy is the result of an item of a Gathered call that would have to wait for another
// transaction. Nothing was done. The caller should retry the item a little later.
var ErrBusy = fmt.Errorf("%w: another transaction holds the message or its key", ErrUnavailable)

type gathered struct{}

// Gathered returns a context for a call of Push, Settle or Cancel with items of several
// callers. An engine may answer an item of such a call with ErrBusy, so that no caller
// waits for the item of another.
func Gathered(ctx context.Context) context.Context { return context.WithValue(ctx, gathered{}, true) }

// IsGathered reports whether ctx comes from Gathered.
func IsGathered(ctx context.Context) bool { return ctx.Value(gathered{}) != nil }
