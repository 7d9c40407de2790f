package diskengine

import (
	"context"
	"fmt"
	"time"

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
	for waits, turn := false, false; ; {
		wait, rest, err := k.letOrWait(bytes, large, turn)
		if err != nil || wait == nil {
			return err
		}
		if rest == 0 && !waits {
			waits = true
			k.waiting.Add(1)
			defer k.waiting.Add(-1)
			k.wake() // there may be nothing sealed yet
		}
		if turn, err = e.await(ctx, wait, rest); err != nil {
			return behind(ctx, err)
		}
	}
}

// await waits until there may be more room, or for the turn of a push, if that is not 0: then turn is true.
func (e *Engine) await(ctx context.Context, room <-chan struct{}, rest time.Duration) (turn bool, err error) {
	var comes <-chan time.Time
	if rest > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		comes = timer.C
	}
	select {
	case <-room:
		return false, nil
	case <-comes:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-e.life.Done():
		return false, wal.ErrClosed
	case <-e.log.Failed():
		return false, e.log.Err()
	}
}

// letOrWait lets a push of so many bytes in, or returns what is closed when it is to be tried again, and after what
// time it is its turn; 0: that is not known. turn says that it has come.
func (k *keeper) letOrWait(bytes int64, large, turn bool) (wait <-chan struct{}, rest time.Duration, err error) {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	crowded, err := k.crowded(large)
	switch refused := k.e.refused("push"); {
	case refused != nil: // space has become short since it came
		return nil, 0, refused
	case crowded && err == nil:
		return k.drawn, 0, nil
	case !crowded && !k.takes(bytes):
		k.makeRoom(bytes)
		return nil, 0, &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: noSpaceHint}
	case !crowded:
		if !turn && !large { // large ones go one after the other anyway
			rest = k.turn(bytes)
		}
		if rest > 0 {
			return k.drawn, rest, nil
		}
		k.coming.Add(bytes)
	}
	return nil, 0, err
}

const (
	halfSlowed = 8 << 20 // bytes a second at which pushes come at half the level: fewer than most disks can flush
	mostSlowed = 0.9     // the level from which on they are slowed no more
)

// turn takes a turn for a push of so many bytes, and says after what time that comes. Pushes are slowed the more, the
// higher the level is, and so come to be as fast as what they bring is flushed: none waits until a whole window is.
// Engine.mu is held.
func (k *keeper) turn(bytes int64) (rest time.Duration) {
	if k.level <= 0 || k.e.cfg.tune.still {
		return 0
	}
	now := time.Now()
	if k.turns.Before(now) {
		k.turns = now
	}
	rest = k.turns.Sub(now)
	level := min(k.level, mostSlowed)
	k.turns = k.turns.Add(time.Duration(float64(bytes) / halfSlowed * level / (1 - level) * float64(time.Second)))
	return rest
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
// long; nil: they follow. It notes it for those who have no lock, and the level: how far they are behind, from 0, where
// pushes begin to be slowed, to 1, where they wait. For a large push also what is about
// to be sealed counts, and the keeper is told of it: whoever waits then looks again when it has
// looked. Engine.mu is held.
func (k *keeper) crowded(large bool) (is bool, err error) {
	k.full.Store(true) // before coming is read: who ends meanwhile has those look again who wait
	taken, _ := k.e.recent.Memory()
	memory := float64(taken)/float64(k.e.cfg.tune.window) - 1.5 // from one and a half windows on
	heavy := memory > 1
	if len(k.sealed) == 0 {
		memory = 0
	}
	windows := memory > 1
	merges := 2*float64(len(k.e.runs.of[recent.Live]))/mostRuns - 1
	runs := merges > 1
	log := 2*k.ahead(k.coming.Load()) - 1
	ahead := log > 1
	k.level = max(memory, merges, log)
	k.slowed.Store(k.level > 0)
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
	k.turns = time.Time{}
	close(k.drawn)
	k.drawn = make(chan struct{})
}
