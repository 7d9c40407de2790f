package tarry

import (
	"context"
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// An item for which another transaction is in the way is handed in again after such pauses,
// each twice as long as the one before.
const (
	busyLeast = 5 * time.Millisecond
	busyMost  = 100 * time.Millisecond
)

// patient waits for transactions of others, on behalf of one item of calls that are made of
// many.
type patient struct{ pause time.Duration }

// again reports whether an item that got err is to be handed in once more, after a pause;
// not when ctx has ended by then.
func (p *patient) again(ctx context.Context, err error) bool {
	if err == nil || !errors.Is(err, engine.ErrBusy) {
		return false
	}
	p.pause = min(max(2*p.pause, busyLeast), busyMost)
	timer := time.NewTimer(p.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
