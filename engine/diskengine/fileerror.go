package diskengine

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// fileErrors says what an error of a backup, restore, check or salvage counts as, and what to do
// about it. The first that fits counts. DIR stands for the directory.
var fileErrors = []struct {
	is, as error
	hint   string
}{
	{vfs.ErrLocked, engine.ErrUnavailable, "another process has DIR open: stop that first"},
	{backup.ErrLater, engine.ErrInvalid, "name another directory, or remove this backup if what came later may be lost"},
	{backup.ErrOther, engine.ErrInvalid, "name another directory"},
	{backup.ErrNone, engine.ErrInvalid, "name another directory"},
	{backup.ErrUnfinished, engine.ErrInvalid, ""},
	{manifest.ErrTaken, engine.ErrInvalid, "name one that is missing or empty"},
	{manifest.ErrRestoring, engine.ErrInvalid, "remove the directory, and do it again"},
	{vfs.ErrVersion, engine.ErrInvalid, "use the release that wrote DIR"},
	{fs.ErrNotExist, engine.ErrInvalid, "name the directory of a disk store, or of a backup of one"},
	{fs.ErrPermission, engine.ErrInvalid, "what it names must be readable and writable"},
}

// fileError makes an *engine.Error of an error of a backup, restore, check or salvage; nil: there
// is none.
func fileError(op, dir string, err error) error {
	if err == nil || isShaped(err) {
		return err
	}
	for _, passed := range []error{context.Canceled, context.DeadlineExceeded, wal.ErrClosed, wal.ErrStopped} {
		if errors.Is(err, passed) {
			return err
		}
	}
	as, hint := engine.ErrUnavailable, "see to the disk of DIR"
	switch damaged := errors.As(err, new(*vfs.DamageError)); {
	case vfs.IsFull(err) && op == "backup":
		as, hint = engine.ErrNoSpace, "free some space; what was written has been removed"
	case vfs.IsFull(err):
		as, hint = engine.ErrNoSpace, "free some space, remove the new directory, and do it again"
	case errors.Is(err, vfs.ErrLocked) && op == "backup":
		hint = "another process works there; wait until it is done"
	case damaged && errors.Is(err, backup.ErrCopy): // the store is sound
		hint = "the backup is what it was before; see to the disk of DIR"
	case damaged && op == "backup" && errors.Is(err, backup.ErrDamaged):
		as, hint = engine.ErrDamaged, "name another directory, or remove this backup"
	case damaged && op == "backup":
		as, hint = engine.ErrDamaged, "the store itself is damaged: check it once it is closed"
	case damaged && errors.Is(err, manifest.ErrDamaged):
		as, hint = engine.ErrDamaged, "restore a backup: nothing can be told about this store"
	case damaged:
		as, hint = engine.ErrDamaged, salvageHint("DIR")
	default:
		for _, k := range fileErrors {
			if errors.Is(err, k.is) {
				as, hint = k.as, k.hint
				break
			}
		}
	}
	return &engine.Error{Op: op, Err: &counted{err, as}, Hint: strings.ReplaceAll(hint, "DIR", dir)}
}
