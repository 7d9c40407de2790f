package diskengine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/internal/calls"
)

// errYield says that a step has done part of its work, and lets others in.
var errYield = errors.New("others are let in")

// mendHint says what to do about a damaged store.
func mendHint(dir string) string {
	return "restore a backup, or salvage the rest: " + salvageHint(dir)
}

// salvageHint names the command that saves what can be read of a store or a backup.
func salvageHint(dir string) string {
	return "tarry check " + dir + " --salvage NEW makes a store of what can be read"
}

// damagedHint is mendHint for an operator who does not know of any damage yet.
func damagedHint(dir string) string { return "the store in " + dir + " is damaged: " + mendHint(dir) }

// untilThen goes on after damagedHint for a store that still serves.
const untilThen = ", once it is closed; the rest of it serves until then"

// damaged wraps an error that says where something cannot be read, with engine.ErrDamaged.
func damaged(err error) error { return fmt.Errorf("%w: %w", engine.ErrDamaged, err) }

// counted is an error that errors.Is takes for another one too. It does not show the text of
// that one, which would mislead: a store in use is not unavailable for good, and a store may be
// sound though its backup is damaged.
type counted struct {
	error
	as error
}

// Unwrap returns both.
func (e *counted) Unwrap() []error { return []error{e.error, e.as} }

// broken is the error of every call once the store has stopped.
func broken(op string, cause error) error {
	hint := "the store stopped at this error; see to the disk and open it again: nothing that was answered is lost"
	if errors.Is(cause, vfs.ErrGone) {
		hint = "the store stopped; put the directory back, or restore a backup, and start again"
	}
	return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, cause), Hint: hint}
}

// refused returns why a push is refused for want of space, or as the store has stopped; nil:
// it is not.
func (e *Engine) refused(op string) error {
	if err := e.store.Failed(); err != nil {
		return broken(op, err)
	}
	switch {
	case e.store.Space.Low.Load():
		return &engine.Error{Op: op, Err: engine.ErrNoSpace, Hint: fmt.Sprintf("%d MiB are to be left free (min_free): %s", e.store.Space.Least()>>20, store.NoSpaceHint)}
	case e.store.Space.IsShort():
		return &engine.Error{Op: op, Err: engine.ErrNoSpace, Hint: store.NoSpaceHint}
	}
	return wrap(op, e.store.Log.Full())
}

// isShaped reports whether an error is or wraps an *engine.Error.
func isShaped(err error) bool {
	_, ok := errors.AsType[*engine.Error](err)
	return ok
}

// wrap makes the error of a whole call an *engine.Error.
func wrap(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case isShaped(err):
		return err
	case errors.Is(err, wal.ErrUnknown):
		return &engine.Error{Op: op, Err: err, Hint: engine.HintUnknown}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &engine.Error{Op: op, Err: err}
	case errors.Is(err, wal.ErrFull):
		return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrNoSpace, err), Hint: store.NoSpaceHint}
	case errors.Is(err, wal.ErrClosed):
		return calls.Closed(op)
	case errors.Is(err, wal.ErrStopped):
		return broken(op, err)
	}
	var damage *vfs.DamageError
	if errors.As(err, &damage) {
		dir := filepath.Dir(filepath.Dir(damage.File)) // of the log or the sstables
		return &engine.Error{Op: op, Err: damaged(err), Hint: damagedHint(dir) + untilThen}
	}
	hint := ""
	if errors.Is(err, syscall.EIO) { // of a read: one of a write stops the store
		hint = notGivenHint
	}
	return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err), Hint: hint}
}

// notGivenHint says what to do when the disk fails to read.
const notGivenHint = "see to the disk; if it can no longer read that, close the store, and see what tarry check says"
