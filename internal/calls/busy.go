package calls

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// An item that failed with ErrBusy is retried after a pause that doubles between these
// bounds.
const (
	minBusyPause = 5 * time.Millisecond
	maxBusyPause = 100 * time.Millisecond
)

// BusyRetry paces the retries of one item of a shared call while another transaction blocks
// it. The zero value is ready to use.
type BusyRetry struct {
	pause time.Duration
	since time.Time
}

// Again pauses and reports whether an item that failed with err should be retried. It
// returns false when ctx ends during the pause, or is Unwatched and Timeout is over.
func (p *BusyRetry) Again(ctx context.Context, err error) bool {
	if err == nil || !errors.Is(err, engine.ErrBusy) {
		return false
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	if ctx.Value(unwatched{}) != nil && time.Since(p.since) >= Timeout {
		return false
	}
	p.pause = min(max(2*p.pause, minBusyPause), maxBusyPause)
	return duration.Sleep(ctx, p.pause)
}

type unwatched struct{}

// Unwatched returns ctx without its end, for a call that nobody may wait for any more.
func Unwatched(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), unwatched{}, true)
}
