package diskengine

import (
	"context"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// admit is what pushes wait for: space, a log that follows, one that is not too far ahead of what is in
// runs, and windows and runs that are not too many. A push of large bodies also waits until windows are
// sealed that are as large. Who is admitted calls keeper.came once he has appended his bytes, or will
// not.
func (e *Engine) admit(ctx context.Context, bytes int64, large bool) error {
	if err := e.refused("push"); err != nil {
		return err
	}
	if err := e.log.Admit(ctx); err != nil {
		return behind(ctx, err)
	}
	k := e.keeper
	if !large && k.let(bytes) {
		return nil
	}
	for waits := false; ; {
		wait, err := k.letOrWait(bytes, large)
		if err != nil || wait == nil {
			return err
		}
		if !waits {
			waits = true
			k.waiting.Add(1)
			defer k.waiting.Add(-1)
			k.wake() // there may be nothing sealed yet
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return behind(ctx, ctx.Err())
		case <-e.life.Done():
			return wal.ErrClosed
		case <-e.log.Failed():
			return e.log.Err()
		}
	}
}

// letOrWait lets a push of so many bytes in, or returns what is closed when it is to be tried again.
func (k *keeper) letOrWait(bytes int64, large bool) (wait <-chan struct{}, err error) {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	crowded, err := k.crowded(large)
	switch refused := k.e.refused("push"); {
	case refused != nil: // space has become short since it came
		return nil, refused
	case crowded && err == nil:
		return k.drawn, nil
	case !crowded && !k.takes(bytes):
		k.makeRoom(bytes)
		return nil, &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: noSpaceHint}
	case !crowded:
		k.coming.Add(bytes)
	}
	return nil, err
}

// behind is the error of a push that waited to be let in; where its context has ended it says for what.
func behind(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil && (err == over || err == context.Cause(ctx)) {
		return &engine.Error{Op: "push", Err: over, Hint: behindHint}
	}
	return err
}

const behindHint = "nothing was pushed: the disk is behind with what was pushed before; push more slowly, allow more time, or see to the disk"

// crowded says that flushes or merges are so far behind that pushes wait, and why that would take
// long; nil: they follow. It notes it for those who have no lock. For a large push also what is about
// to be sealed counts, and the keeper is told of it: whoever waits then looks again when it has
// looked. Engine.mu is held.
func (k *keeper) crowded(large bool) (is bool, err error) {
	k.full.Store(true) // before coming is read: who ends meanwhile has those look again who wait
	taken, _ := k.e.recent.Memory()
	heavy := taken > k.e.cfg.tune.window/2*5
	windows := heavy && len(k.sealed) > 0
	runs := len(k.e.runs.of[recent.Live]) > mostRuns
	ahead := k.isAhead(k.coming.Load())
	k.full.Store(windows || runs || ahead)
	if heavy && large && !windows && k.e.beginning == 0 && k.grown() {
		windows = true
		k.wake()
	}
	switch {
	case (windows || ahead) && disk.IsFull(k.failing), runs && k.cramped:
		err = &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: noSpaceHint}
	case (windows || ahead) && k.failing != nil:
		err = &engine.Error{Op: "push", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, k.failing),
			Hint: "what was pushed before cannot be written to a run; see to the disk"}
	}
	return windows || runs || ahead, err
}

// mostRuns is how many runs of messages that live there are before pushes wait for merges.
const mostRuns = 256

// drew lets those look again who wait for room. Engine.mu is held.
func (k *keeper) drew() {
	_, _ = k.crowded(false)
	close(k.drawn)
	k.drawn = make(chan struct{})
}
