package logengine

import (
	"context"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/wal"
)

// admit is what pushes wait for: space, a log that follows, and windows and runs that are not too
// many. A push of large bodies also waits until windows are sealed that are as large.
func (e *Engine) admit(ctx context.Context, large bool) error {
	if err := e.refused("push"); err != nil {
		return err
	}
	if err := e.log.Admit(ctx); err != nil {
		return err
	}
	for large || e.keeper.full.Load() {
		e.mu.Lock()
		wait := e.keeper.drawn
		crowded, err := e.keeper.crowded(large)
		e.mu.Unlock()
		switch failed := e.failed(); {
		case failed != nil:
			return broken("push", failed)
		case !crowded:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.life.Done():
			return wal.ErrClosed
		case <-e.log.Failed():
			return e.log.Err()
		}
	}
	return nil
}

// crowded says that flushes or merges are so far behind that pushes wait, and why that would take
// long; nil: they follow. It notes it for those who have no lock. For a large push also what is about
// to be sealed counts, and the keeper is told of it: whoever waits then looks again when it has
// looked. Engine.mu is held.
func (k *keeper) crowded(large bool) (is bool, err error) {
	taken, _ := k.e.recent.Memory()
	heavy := taken > k.e.cfg.tune.window/2*5
	windows := heavy && len(k.sealed) > 0
	runs := len(k.e.runs.of[recent.Live]) > mostRuns
	k.full.Store(windows || runs)
	if heavy && large && !windows && k.e.beginning == 0 && k.grown() {
		windows = true
		k.wake()
	}
	switch {
	case windows && disk.IsFull(k.failing), runs && k.cramped:
		err = &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: noSpaceHint}
	case windows && k.failing != nil:
		err = &engine.Error{Op: "push", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, k.failing),
			Hint: "what was pushed before cannot be written to a run; see to the disk"}
	}
	return windows || runs, err
}

// mostRuns is how many runs of messages that live there are before pushes wait for merges.
const mostRuns = 256

// drew lets those look again who wait for room. Engine.mu is held.
func (k *keeper) drew() {
	_, _ = k.crowded(false)
	close(k.drawn)
	k.drawn = make(chan struct{})
}
