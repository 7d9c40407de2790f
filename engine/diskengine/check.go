package diskengine

import (
	"context"
	"path/filepath"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
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
		return rep, fileError("check", dir, err)
	}
	rep, err := verify.Check(f, dir, &verify.Config{Pace: pace})
	return rep, fileError("check", dir, err)
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
		return out, fileError(op, from, err)
	}
	out, err := verify.Salvage(f, from, filepath.Clean(to), &verify.Config{Pace: pace}, tell)
	return out, fileError(op, from, err)
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
