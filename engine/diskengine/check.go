package diskengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Report is what a check found.
type Report = verify.Report

// Finding is one thing that is wrong with a store.
type Finding = verify.Finding

// Loss is one thing that a salvage gives up.
type Loss = verify.Loss

// Salvaged describes a store that was salvaged from another one.
type Salvaged = verify.Salvaged

// Check reads a whole store that no process has open, or a whole backup, and reports what is
// wrong with it. It takes the store's lock and changes nothing. progress, if not nil, is
// called with the bytes read so far. Check fails with engine.ErrUnavailable when a process has
// the store open or the disk cannot be read. It fails with engine.ErrDamaged when too little
// can be read to say anything, and with engine.ErrInvalid when the directory holds no such
// store, or one in another format.
func Check(ctx context.Context, dir string, progress func(read int64)) (*Report, error) {
	f, pace := vfs.OS{}, paced(ctx, progress)
	if backup.Is(f, dir) {
		rep, err := backup.Check(f, dir, pace)
		if err != nil {
			return nil, backupError("check", dir, err)
		}
		return rep, nil
	}
	rep, err := verify.Check(f, dir, &verify.Config{Pace: pace})
	if err != nil {
		return nil, checkError("check", dir, err)
	}
	return rep, nil
}

// Salvage makes a sound store of what can be read of another store that no process has open,
// or of a backup. It changes nothing in the old directory, from. The new one, to, must be
// missing or empty. First it calls tell with what is wrong and what is lost; an error of tell
// ends it before anything is written. A message may be handed out again if its ack or cancel
// is lost. After a later error the new directory cannot be opened: remove it. Salvage fails as
// Check does, and with engine.ErrInvalid when to is not empty or is within from.
func Salvage(ctx context.Context, from, to string, tell func(*Salvaged) error, progress func(bytes int64)) (Salvaged, error) {
	return salvage(ctx, vfs.OS{}, from, to, tell, progress)
}

func salvage(ctx context.Context, f vfs.FS, from, to string, tell func(*Salvaged) error, progress func(bytes int64)) (Salvaged, error) {
	const op = "salvage"
	if rel, err := filepath.Rel(from, to); err == nil && rel != "." && filepath.IsLocal(rel) {
		return Salvaged{}, &engine.Error{Op: op, Err: engine.ErrInvalid, Hint: to + " is within " + from + ": name another directory"}
	}
	pace := paced(ctx, progress)
	if backup.Is(f, from) {
		out, err := backup.Salvage(f, from, to, pace, tell)
		if err != nil {
			return out, backupError(op, from, err)
		}
		return out, nil
	}
	out, err := verify.Salvage(f, from, filepath.Clean(to), &verify.Config{Pace: pace}, tell)
	if err != nil {
		return out, checkError(op, from, err)
	}
	return out, nil
}

// paced returns a function that reports progress, and ends work when its context ends.
func paced(ctx context.Context, progress func(bytes int64)) func(int) error {
	all := int64(0)
	return func(n int) error {
		all += int64(n)
		if progress != nil {
			progress(all)
		}
		return ctx.Err()
	}
}

// checkError makes an *engine.Error of why a store cannot be checked or salvaged.
func checkError(op, dir string, err error) error {
	fail := func(sentinel error, hint string) error {
		return &engine.Error{Op: op, Err: fmt.Errorf("%w: %w", sentinel, err), Hint: hint}
	}
	var ours *engine.Error
	switch {
	case errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, vfs.ErrLocked):
		return &engine.Error{Op: op, Err: &counted{err, engine.ErrUnavailable}, Hint: "another process has " + dir + " open: stop that first"}
	case errors.Is(err, manifest.ErrTaken):
		return fail(engine.ErrInvalid, takenHint)
	case errors.Is(err, manifest.ErrRestoring):
		return fail(engine.ErrInvalid, "remove the directory, and do it again")
	case errors.Is(err, fs.ErrNotExist):
		return fail(engine.ErrInvalid, "name the directory of a disk store, or of a backup of one")
	case errors.Is(err, vfs.ErrVersion):
		return fail(engine.ErrInvalid, "use the release that wrote "+dir)
	case vfs.IsFull(err):
		return fail(engine.ErrNoSpace, fullHint)
	case errors.Is(err, manifest.ErrDamaged):
		return fail(engine.ErrDamaged, "restore a backup: nothing can be told about this store")
	case errors.Is(err, fs.ErrPermission):
		return fail(engine.ErrInvalid, "the directory "+dir+" must be readable and writable")
	}
	return fail(engine.ErrUnavailable, "see to the disk of "+dir)
}
