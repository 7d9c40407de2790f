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
type BusyRetry struct{ pause time.Duration }

// Again pauses and reports whether an item that failed with err should be retried. It
// returns false when ctx ends during the pause.
func (p *BusyRetry) Again(ctx context.Context, err error) bool {
	if err == nil || !errors.Is(err, engine.ErrBusy) {
		return false
	}
	p.pause = min(max(2*p.pause, minBusyPause), maxBusyPause)
	return duration.Sleep(ctx, p.pause)
}
