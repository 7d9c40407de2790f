package diskengine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/gate"
)

var (
	// errLack says that a step needs something from the disk first, as call.lacks tells, and
	// has changed nothing for what it needs it for.
	errLack = errors.New("something is to be read first")

	// errYield says that a step has done a part of what there was to do, and lets others in.
	errYield = errors.New("others are let in")
)

// damagedHint says what to do about a store in a directory.
func damagedHint(dir string) string {
	return "the store in " + dir + " is damaged: restore a backup, or see by tarry check " + dir + " --repair what can be mended"
}

// broken is the error of every call once the store has stopped.
func broken(op string, cause error) error {
	return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, cause),
		Hint: "the store stopped at this error; see to the disk and open it again: nothing that was answered is lost"}
}

// wrap gives an error of a whole call the engine's shape.
func wrap(op string, err error) error {
	var ours *engine.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return err
	case errors.Is(err, wal.ErrUnknown):
		return &engine.Error{Op: op, Err: err, Hint: engine.HintUnknown}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &engine.Error{Op: op, Err: err}
	case errors.Is(err, wal.ErrFull):
		return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrNoSpace, err), Hint: noSpaceHint}
	case errors.Is(err, wal.ErrClosed):
		return gate.Closed(op)
	case errors.Is(err, wal.ErrStopped):
		return broken(op, err)
	}
	var damage *disk.DamageError
	if errors.As(err, &damage) {
		dir := filepath.Dir(filepath.Dir(damage.File)) // of the log or the runs
		return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err),
			Hint: damagedHint(dir) + ", once it is closed; the rest of it serves until then"}
	}
	return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err)}
}
