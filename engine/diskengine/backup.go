package diskengine

import (
	"context"
	"errors"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Backup brings the backup in a directory up to date, while the store goes on serving. It
// makes the directory if it is missing. It fails with engine.ErrInvalid if the directory holds
// anything but a backup of this store, or one of a later instant: then the store was restored
// from an older backup, or salvaged. When Backup returns without an error, all that was
// answered before the call is in the backup and durable. After an error the backup is as it
// was before. New files are read again before they count: if the store is damaged the error
// names the file, and is engine.ErrDamaged.
//
// Sstables that are new to the backup are shared with the store by hard links, or copied.
// Files being copied stay in the store until Backup returns. They are copied, and read again,
// at 64 MiB a second at most. There is one Backup at a time: another one fails with
// engine.ErrLimit. A full disk is engine.ErrNoSpace.
func (e *Engine) Backup(ctx context.Context, dir string) (engine.Backup, error) {
	const op = "backup"
	var out engine.Backup
	err := e.do(ctx, op, func(c *call) error {
		if err := e.store.Failed(); err != nil {
			return broken(op, err)
		}
		made := make(chan engine.Backup, 1)
		err := c.withoutLock(func() error {
			if !e.copying.TryLock() {
				return &engine.Error{Op: op, Err: engine.ErrLimit, Hint: "another backup is being made; wait until that is done"}
			}
			defer e.copying.Unlock()
			b, err := e.backup(ctx, dir)
			made <- b
			return err
		})
		if err == nil {
			out = <-made
		}
		return err
	})
	return out, err
}

// backup makes a backup of the store as it is now.
func (e *Engine) backup(ctx context.Context, dir string) (engine.Backup, error) {
	pin := e.store.Compactor.Pin()
	defer pin.Leave()
	if err := e.store.Log.Wait(ctx, e.store.Log.End()); err != nil {
		return engine.Backup{}, err
	}
	calmly := e.store.Compactor.Pace("backup", 32<<20, func() float64 { return 0 })
	pace := func(n int) error {
		if calmly(n) != nil {
			return wal.ErrClosed
		}
		return ctx.Err()
	}
	fs := e.cfg.tune.FS // not e.fs: if the backup's disk hangs, that says nothing about the store's
	src := backup.Source{State: *pin.State, Tables: e.store.TablesDir(), Taken: e.cfg.Now(), Log: func(dir string) (wal.Copied, error) {
		defer pin.Log.Release()
		return pin.Log.Copy(fs, dir, pace)
	}}
	r, err := backup.Take(fs, dir, src, pace)
	if errors.Is(err, backup.ErrSource) {
		e.noteDamage(err)
		return engine.Backup{}, &engine.Error{Op: "backup", Err: &counted{err, engine.ErrDamaged},
			Hint: "the backup is what it was before; stop the store, and see what tarry check " + e.store.Dir + " says"}
	}
	return engine.Backup(r), fileError("backup", dir, err)
}

// noteDamage counts a block of an sstable that a backup found damaged: it reads through files
// of its own.
func (e *Engine) noteDamage(err error) {
	damage, ok := errors.AsType[*vfs.DamageError](err)
	if !ok {
		return
	}
	for _, src := range e.store.Outer.Load().All() {
		if sstable.Name(e.store.TablesDir(), src.Number()) == damage.File {
			src.NoteDamaged(damage.Offset)
		}
	}
}

// Restore makes a store in the directory to, which must be missing or empty, from the backup
// in the directory from. It checks the backup first. Messages that were deleted before the
// backup stay deleted. The store opens as after a crash at the instant of the backup. Restore
// fails with engine.ErrInvalid when from is no backup or to is not empty. It fails with
// engine.ErrDamaged when the backup is damaged, and with engine.ErrUnavailable when another
// process works on it. progress, if not nil, is called with the bytes read and written so far.
func Restore(ctx context.Context, from, to string, progress func(bytes int64)) (engine.Backup, error) {
	return restore(ctx, vfs.OS{}, from, to, progress)
}

func restore(ctx context.Context, f vfs.FS, from, to string, progress func(bytes int64)) (engine.Backup, error) {
	r, err := backup.Restore(f, from, to, paced(ctx, progress))
	return engine.Backup(r), fileError("restore", from, err)
}
