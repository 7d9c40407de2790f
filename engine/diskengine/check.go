package diskengine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/check"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Report is what a check found.
type Report = check.Report

// Finding is something that is wrong with a store.
type Finding = check.Finding

// Loss is something that a rescue gives up.
type Loss = check.Loss

// Rescued tells of a store that was made of what could be read of a damaged one.
type Rescued = check.Rescued

// Check reads all of the store in a directory that nobody has open, or of a backup, and says what is
// wrong with it. It changes nothing but who has the lock. progress, if it is not nil, is called with the bytes that were
// read by then. It fails with engine.ErrUnavailable when a process has the store open, or the disk
// cannot be read, with engine.ErrDamaged when nothing can be told of what lies there, and with
// engine.ErrInvalid when there is no store of this kind or of a newer format.
func Check(ctx context.Context, dir string, progress func(read int64)) (*Report, error) {
	f, pace := disk.OS{}, paced(ctx, progress)
	if backup.Is(f, dir) {
		rep, err := backup.Check(f, dir, &backup.Config{Pace: pace})
		if err != nil {
			return nil, checkError(dir, backupError("check", dir, err))
		}
		return rep, nil
	}
	rep, err := check.Check(f, dir, &check.Config{Pace: pace})
	if err != nil {
		return nil, checkError(dir, err)
	}
	return rep, nil
}

// Repair checks a store and mends what can be mended without losing anything: done is what it did,
// a line each, and the report is of a check behind it. A backup it refuses.
func Repair(ctx context.Context, dir string, progress func(read int64)) (done []string, after *Report, err error) {
	f := disk.OS{}
	if backup.Is(f, dir) {
		return nil, nil, isBackup(dir)
	}
	done, after, err = check.Repair(f, dir, &check.Config{Pace: paced(ctx, progress)})
	if err != nil {
		return done, nil, checkError(dir, err)
	}
	return done, after, nil
}

// Losses says what Rescue would give up of a store: nothing of one that is sound. It changes nothing.
func Losses(ctx context.Context, dir string, progress func(read int64)) ([]Loss, error) {
	all, err := check.Losses(disk.OS{}, dir, &check.Config{Pace: paced(ctx, progress)})
	if err != nil {
		return nil, checkError(dir, err)
	}
	return all, nil
}

// Rescue makes a sound store, in its place, of what can be read of a damaged one. First it calls tell with
// what is lost; an error of that ends it, and nothing was changed. All files are kept as they were in a
// directory beside them. What had been acked or cancelled, and the record of it is lost, may be handed out
// again. A store that is sound is left alone, and so is, with engine.ErrInvalid, a backup.
func Rescue(ctx context.Context, dir string, tell func([]Loss) error, progress func(read int64)) (Rescued, error) {
	f := disk.OS{}
	if backup.Is(f, dir) {
		return Rescued{}, isBackup(dir)
	}
	out, err := check.Rescue(f, dir, &check.Config{Pace: paced(ctx, progress)}, tell)
	if err != nil {
		return out, checkError(dir, err)
	}
	return out, nil
}

// IsBackup reports whether a directory holds a backup, finished or not.
func IsBackup(dir string) bool { return backup.Is(disk.OS{}, dir) }

func isBackup(dir string) error {
	if !backup.Finished(disk.OS{}, dir) {
		return &engine.Error{Op: "repair", Err: engine.ErrInvalid, Hint: dir + " is a backup that was never finished: make it again"}
	}
	return &engine.Error{Op: "repair", Err: engine.ErrInvalid, Hint: dir + " is a backup, and is left as it is: tarry restore --allow-loss makes a store of what can be read of it"}
}

// paced ends work with a context, and tells how far it has come.
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

// checkError says why a store cannot be checked.
func checkError(dir string, err error) error {
	fail := func(sentinel error, hint string) error {
		return &engine.Error{Op: "check", Err: fmt.Errorf("%w: %w", sentinel, err), Hint: hint}
	}
	var ours *engine.Error
	switch {
	case errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, disk.ErrLocked):
		return &engine.Error{Op: "check", Err: &counted{err, engine.ErrUnavailable}, Hint: "another process has " + dir + " open: stop that first"}
	case errors.Is(err, fs.ErrNotExist):
		if names, _ := (disk.OS{}).List(dir); onPebble(names) {
			return pebbleError("check", dir)
		}
		return fail(engine.ErrInvalid, "name the directory of a disk store, or of a backup of one")
	case errors.Is(err, wal.ErrNewer), errors.Is(err, run.ErrNewer), errors.Is(err, marks.ErrNewer), errors.Is(err, manifest.ErrNewer), errors.Is(err, record.ErrNewer):
		return fail(engine.ErrInvalid, dir+" was written by a newer release: use that")
	case errors.Is(err, run.ErrOlder):
		return fail(engine.ErrInvalid, dir+" was written by an earlier release: use that")
	case disk.IsFull(err):
		return fail(engine.ErrNoSpace, "free some space; the store is as it was")
	case errors.Is(err, manifest.ErrDamaged):
		return fail(engine.ErrDamaged, "restore a backup: of this store nothing can be told")
	case errors.Is(err, fs.ErrPermission):
		return fail(engine.ErrInvalid, "the directory "+dir+" must be readable and writable")
	}
	return fail(engine.ErrUnavailable, "see to the disk of "+dir)
}
