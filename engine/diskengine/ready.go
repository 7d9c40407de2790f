package diskengine

import (
	"context"
	"fmt"

	"github.com/tarryhq/tarry/engine"
)

var _ interface {
	engine.Readier
	engine.Troubler
} = (*Engine)(nil)

// Ready implements engine.Readier: the store must not have stopped, and the disk must answer and
// have space for more messages.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.calls.Enter(ctx, "ready"); err != nil {
		return err
	}
	defer e.calls.Leave()
	if err := e.store.Disk.Stuck(); err != nil {
		return err
	}
	if err := e.store.Disk.Gone(); err != nil && e.store.Failed() == nil {
		e.store.Stop(err)()
	}
	return e.refused("ready")
}

// Troubles implements engine.Troubler.
func (e *Engine) Troubles() []engine.Trouble {
	e.store.Mu.Lock()
	n := e.damagedBlocks()
	e.store.Mu.Unlock()
	if n == 0 {
		return nil
	}
	what := fmt.Sprintf("%d blocks of the store in %s are damaged, or the disk cannot read them", n, e.store.Dir)
	if n == 1 {
		what = "a block of the store in " + e.store.Dir + " is damaged, or the disk cannot read it"
	}
	return []engine.Trouble{{Message: what + ": messages are not handed out",
		Hint: "the log of the process names the file; " + mendHint(e.store.Dir) + ", once the store is closed"}}
}
