package diskengine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/codec"
)

// lockName is the file in a store's directory that its process has locked.
const lockName = "LOCK"

// Open opens the store in a directory, and makes one if there is none. A nil cfg means all
// defaults. Open fails with engine.ErrUnavailable when another process has the directory open
// or the disk fails. It fails with engine.ErrDamaged when the store cannot be read, and with
// engine.ErrInvalid when the directory holds something else or a newer format. Open itself
// waits for a disk that does not answer as long as it takes; tarry.Open waits no longer than
// its context lasts.
func Open(dir string, cfg *Config) (_ *Engine, err error) {
	e := &Engine{
		cfg: cfg.withDefaults(), closed: make(chan struct{}),
		queues: make(map[string]*queue), numbered: make(map[uint32]*queue),
	}
	dir = filepath.Clean(dir)
	if _, ok := e.cfg.tune.FS.(vfs.OS); ok { // the process may change its directory later
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err)}
		}
	}
	e.store = store.New(dir, e.cfg.tune.Config, store.Hooks{
		Rewrite: e.rewrite, ForgetIdle: e.forgetIdle, Refused: e.refused,
		Next: func() (uint64, uint32) { return uint64(e.nextID), e.nextQueue },
	})
	defer func() {
		if err != nil {
			e.store.End()
			err = e.openError(errors.Join(err, e.shut(true)))
		}
	}()
	if err := vfs.MkdirAll(e.store.FS, e.store.Dir); err != nil {
		return nil, err
	}
	if err := e.ours(); err != nil {
		return nil, err
	}
	if e.lock, err = e.store.FS.Lock(filepath.Join(e.store.Dir, lockName)); err != nil {
		return nil, err
	}
	if l, ok := e.lock.(vfs.Keeper); ok {
		e.store.Disk.Kept = l.Kept
	}
	man, err := e.store.Manifest()
	if err != nil {
		return nil, err
	}
	s := man.State()
	e.nextID, e.nextQueue = engine.ID(s.NextID), s.NextQueue
	e.leases = memtable.NewLeases(&memtable.Config{OnHeap: e.cfg.tune.OnHeap}, e.cfg.MaxLeases)
	if err := e.store.Open(&s); err != nil {
		return nil, err
	}
	r := &replay{e: e, log: filepath.Join(e.store.Dir, manifest.LogName)}
	err = e.store.OpenLog(&s, func(x wal.Entry) error { return record.Each(x.Kind, x.Bytes, r) })
	if err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := e.store.Start(man); err != nil {
		return nil, err
	}
	return e, nil
}

// openError says what is wrong with a directory.
func (e *Engine) openError(err error) error {
	var ours *engine.Error
	switch {
	case errors.As(err, &ours):
		return err
	case errors.Is(err, vfs.ErrLocked):
		who := cmp.Or(vfs.Holder(filepath.Join(e.store.Dir, lockName)), "another process")
		return &engine.Error{Op: "open", Err: &counted{fmt.Errorf("%s is in use by %s", e.store.Dir, who), engine.ErrUnavailable},
			Hint: "one process at a time has a store open: end that one, or talk to its server"}
	case errors.As(err, new(*vfs.DamageError)):
		return &engine.Error{Op: "open", Err: damaged(err), Hint: damagedHint(e.store.Dir)}
	case errors.Is(err, vfs.ErrVersion):
		return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrInvalid, err), Hint: "use the release that wrote the store in " + e.store.Dir + "; to change releases, copy the messages to a new store"}
	case errors.Is(err, fs.ErrNotExist) && e.store.Memtables != nil: // a file that the manifest names
		return &engine.Error{Op: "open", Err: damaged(err), Hint: damagedHint(e.store.Dir)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrInvalid, err), Hint: e.store.Dir + " must be a directory, readable and writable"}
	}
	hint := "the store in " + e.store.Dir + " cannot be opened: see to the disk"
	if errors.Is(err, syscall.EIO) {
		hint += "; if it can no longer read that, " + mendHint(e.store.Dir)
	}
	return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err), Hint: hint}
}

// ours refuses a directory that holds something other than a store, before anything is written
// to it.
func (e *Engine) ours() error {
	names, err := e.store.FS.List(e.store.Dir)
	if err != nil {
		return err
	}
	if slices.Contains(names, manifest.Restoring) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid,
			Hint: fmt.Sprintf("%s holds %s: a restore or salvage to it was cut off; remove the directory, and do it again", e.store.Dir, manifest.Restoring)}
	}
	if slices.Contains(names, manifest.Name) {
		return nil
	}
	// A first opening that was cut short leaves these.
	ours := []string{lockName, vfs.HolderName, store.BallastName, manifest.NewName, manifest.LogName, manifest.TablesName}
	for _, name := range names {
		if !slices.Contains(ours, name) {
			return e.foreign(name)
		}
	}
	return nil
}

// foreign is the error of a directory that holds something else.
func (e *Engine) foreign(name string) error {
	if backup.Is(e.store.FS, e.store.Dir) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid,
			Hint: fmt.Sprintf("%s is a backup; make a store of it with tarry restore %s DIR", e.store.Dir, e.store.Dir)}
	}
	return &engine.Error{Op: "open", Err: engine.ErrInvalid,
		Hint: fmt.Sprintf("%s is no store of tarry: it holds %s; name an empty directory or a new one", e.store.Dir, name)}
}

// nonce makes the nonce of a lease that begins at ms.
func (e *Engine) nonce(ms int64) codec.Nonce {
	if e.cfg.tune.Random == nil {
		return codec.NewNonceAt(ms)
	}
	n := new(codec.Nonce)
	e.store.Random(n[:])
	n.Start(ms)
	return *n
}

// shut closes whatever is open. If callers were told that the store stopped, it does not
// return the error of the log again.
func (e *Engine) shut(stopped bool) error {
	var errs []error
	if e.store.Compactor != nil {
		e.store.Compactor.Wait()
	}
	if e.store.Log != nil {
		if err := e.store.Log.Close(); err != nil && e.store.Broken.Load() == nil && !(stopped && errors.Is(err, wal.ErrStopped)) {
			errs = append(errs, wrap("close", err))
		}
	}
	for _, src := range e.store.Tables.All() {
		errs = append(errs, src.Close())
	}
	if e.store.Memtables != nil {
		e.store.Mu.Lock() // figures may still be read
		e.store.Memtables.Close()
		e.leases.Close()
		e.store.Mu.Unlock()
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
