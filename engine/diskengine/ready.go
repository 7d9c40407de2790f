package diskengine

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// stuckAfter is how long the disk may take over one operation before the engine says that
// it is not ready. A sync under load may take a second.
const stuckAfter = 5 * time.Second

// Ready implements engine.Readier: the store must not have failed, and the disk must
// answer and have space for more messages.
func (e *Engine) Ready(ctx context.Context) error {
	return e.do(ctx, "ready", func(now clock, _ *pending) error {
		if err := e.store.disk.stuck(time.Now()); err != nil {
			return err
		}
		if err := e.space.check(e, now); err != nil {
			return &engine.Error{Op: "ready", Err: err, Hint: noSpaceHint}
		}
		return nil
	})
}

// stuck returns an error when something has been under way for too long.
func (d *disk) stuck(now time.Time) error {
	o, ok := d.slowest()
	took := now.Sub(o.since)
	if !ok || took < stuckAfter {
		return nil
	}
	return &engine.Error{Op: "ready", Err: engine.ErrUnavailable,
		Hint: fmt.Sprintf("the disk does not answer: %s %s is under way for %s; see to the disk", o.what, o.name, took.Round(time.Second))}
}
