package diskengine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/backup"
	"github.com/tarryhq/tarry/engine/diskengine/internal/deletions"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/token"
)

// The parts of a store's directory.
const (
	lockName  = "LOCK"
	tablesDir = manifest.TablesName
)

// Open opens the store in a directory, and makes one if there is none. A nil cfg means all
// defaults. Open fails with engine.ErrUnavailable when another process has the directory open
// or the disk fails. It fails with engine.ErrDamaged when the store cannot be read, and with
// engine.ErrInvalid when the directory holds something else or a newer format. Open itself
// waits for a disk that does not answer as long as it takes; tarry.Open waits no longer than
// its context lasts.
func Open(dir string, cfg *Config) (_ *Engine, err error) {
	e := &Engine{
		cfg: cfg.withDefaults(), dir: filepath.Clean(dir), closed: make(chan struct{}),
		queues: make(map[string]*queue), numbered: make(map[uint32]*queue),
	}
	if _, ok := e.cfg.tune.fs.(vfs.OS); ok { // the process may change its directory later
		if e.dir, err = filepath.Abs(e.dir); err != nil {
			return nil, &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err)}
		}
	}
	e.mu.held = e.cfg.tune.held
	e.pushing = semaphore.NewWeighted(e.cfg.MemoryBytes / enterPart)
	e.setTables(new(sources))
	e.disk = &measured{FS: e.cfg.tune.fs, patience: fdRetry{e.cfg.RetryFor, e.cfg.Logger}}
	e.fs, e.slog = e.disk, e.cfg.Logger
	e.life, e.end = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			e.end()
			err = e.openError(errors.Join(err, e.shut(true)))
		}
	}()
	if err := vfs.MkdirAll(e.fs, e.dir); err != nil {
		return nil, err
	}
	if err := e.ours(); err != nil {
		return nil, err
	}
	if e.lock, err = e.fs.Lock(filepath.Join(e.dir, lockName)); err != nil {
		return nil, err
	}
	if l, ok := e.lock.(vfs.Keeper); ok {
		e.disk.kept = l.Kept
	}
	man, err := e.manifest()
	if err != nil {
		return nil, err
	}
	s := man.State()
	e.id, e.secret = s.Store, s.Secret
	e.nextID, e.nextQueue, e.nextFile = engine.ID(s.NextID), s.NextQueue, s.NextFile
	e.sealedAt, e.replayed = s.Replay, s.Replay
	e.memtables = memtable.New(&memtable.Config{Keep: e.cfg.MemoryBytes / 6, OnHeap: e.cfg.tune.onHeap, Low: e.low})
	e.leases = memtable.NewLeases(&memtable.Config{OnHeap: e.cfg.tune.onHeap}, e.cfg.MaxLeases)
	if err := e.openTables(&s); err != nil {
		return nil, err
	}
	e.space = openSpace(e)
	r := &replay{e: e, log: filepath.Join(e.dir, manifest.LogName)}
	cfgLog := e.logConfig()
	cfgLog.Begun = s.Begun
	e.log, _, err = wal.Open(e.fs, r.log, cfgLog, wal.Pos(s.Replay), func(x wal.Entry) error {
		return record.Each(x.Kind, x.Bytes, r)
	})
	if err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := e.begin(man); err != nil {
		return nil, err
	}
	e.compactor = newCompactor(e, man)
	e.compactor.start()
	return e, nil
}

// low tells the compactor to make memory ready.
func (e *Engine) low() {
	if e.compactor != nil {
		signal(e.compactor.low)
	}
}

// openError says what is wrong with a directory.
func (e *Engine) openError(err error) error {
	var ours *engine.Error
	switch {
	case errors.As(err, &ours):
		return err
	case errors.Is(err, vfs.ErrLocked):
		who := cmp.Or(vfs.Holder(filepath.Join(e.dir, lockName)), "another process")
		return &engine.Error{Op: "open", Err: &counted{fmt.Errorf("%s is in use by %s", e.dir, who), engine.ErrUnavailable},
			Hint: "one process at a time has a store open: end that one, or talk to its server"}
	case errors.As(err, new(*vfs.DamageError)):
		return &engine.Error{Op: "open", Err: damaged(err), Hint: damagedHint(e.dir)}
	case errors.Is(err, wal.ErrNewer), errors.Is(err, sstable.ErrNewer), errors.Is(err, deletions.ErrNewer), errors.Is(err, manifest.ErrNewer), errors.Is(err, record.ErrNewer):
		return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrInvalid, err), Hint: "the store in " + e.dir + " was written by a newer release: use that"}
	case errors.Is(err, sstable.ErrOlder):
		return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrInvalid, err), Hint: "the store in " + e.dir + " was written by an earlier release: copy it to a new one with that"}
	case errors.Is(err, fs.ErrNotExist) && e.memtables != nil: // a file that the manifest names
		return &engine.Error{Op: "open", Err: damaged(err), Hint: damagedHint(e.dir)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrInvalid, err), Hint: e.dir + " must be a directory, readable and writable"}
	}
	hint := "the store in " + e.dir + " cannot be opened: see to the disk"
	if errors.Is(err, syscall.EIO) {
		hint += "; if it can no longer read that, " + mendHint(e.dir)
	}
	return &engine.Error{Op: "open", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, err), Hint: hint}
}

// ours refuses a directory that holds something other than a store, before anything is written
// to it.
func (e *Engine) ours() error {
	names, err := e.fs.List(e.dir)
	if err != nil {
		return err
	}
	if slices.Contains(names, manifest.Restoring) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid,
			Hint: fmt.Sprintf("%s holds %s: a restore or salvage to it was cut off; remove the directory, and do it again", e.dir, manifest.Restoring)}
	}
	if slices.Contains(names, manifest.Name) {
		return nil
	}
	if onPebble(names) {
		return pebbleError("open", e.dir)
	}
	// A first opening that was cut short leaves these.
	ours := []string{lockName, vfs.HolderName, ballastName, manifest.NewName, manifest.LogName, tablesDir}
	for _, name := range names {
		if !slices.Contains(ours, name) {
			return e.foreign(name)
		}
	}
	return nil
}

// foreign is the error of a directory that holds something else.
func (e *Engine) foreign(name string) error {
	if backup.Is(e.fs, e.dir) {
		return &engine.Error{Op: "open", Err: engine.ErrInvalid,
			Hint: fmt.Sprintf("%s is a backup; make a store of it with tarry restore %s DIR", e.dir, e.dir)}
	}
	return &engine.Error{Op: "open", Err: engine.ErrInvalid,
		Hint: fmt.Sprintf("%s is no store of tarry: it holds %s; name an empty directory or a new one", e.dir, name)}
}

// manifest opens the manifest, and makes the first one of a new store.
func (e *Engine) manifest() (*manifest.Manifest, error) {
	man, err := manifest.Open(e.fs, e.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return man, err
	}
	parts := []string{manifest.LogName, tablesDir}
	for _, name := range parts {
		within, err := e.fs.List(filepath.Join(e.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(within) > 0 { // a new store has its manifest before it has any of these files
			return nil, &vfs.DamageError{What: manifest.ErrDamaged, File: filepath.Join(e.dir, manifest.Name), Reason: "it is missing, and " + name + " is not empty"}
		}
	}
	for _, name := range parts {
		if err := vfs.MkdirAll(e.fs, filepath.Join(e.dir, name)); err != nil {
			return nil, err
		}
	}
	if err := e.syncAbove(); err != nil {
		return nil, err
	}
	var b [24]byte
	e.random(b[:])
	first := manifest.State{Store: binary.LittleEndian.Uint64(b[:]), NextID: 1, NextQueue: 1, NextFile: 1}
	copy(first.Secret[:], b[8:])
	return manifest.Create(e.fs, e.dir, first)
}

// random fills b with unpredictable bytes.
func (e *Engine) random(b []byte) {
	if fn := e.cfg.tune.random; fn != nil {
		fn(b)
		return
	}
	_, _ = rand.Read(b) // never fails
}

// nonce makes the nonce of a lease.
func (e *Engine) nonce() token.Nonce {
	if e.cfg.tune.random == nil {
		return token.NewNonce()
	}
	n := new(token.Nonce)
	e.random(n[:])
	return *n
}

func (e *Engine) salt() uint64 {
	var b [8]byte
	e.random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// logSpares is how many segments of the log are made ahead.
const logSpares = 2

func (e *Engine) logConfig() *wal.Config {
	t := &e.cfg.tune
	keep := int(t.span/t.segment) + 3 // as many as a flush releases at once: they are used again
	return &wal.Config{ID: e.id, SegmentBytes: t.segment, Spares: logSpares, Keep: keep, MaxEntry: t.entry, RetryFor: e.cfg.RetryFor, Logger: e.slog, Still: t.still, Salt: e.salt,
		Short: e.space.isShort, Relieve: e.space.giveUp, Synced: e.disk.syncs.Observe}
}

func (e *Engine) tableConfig() *sstable.Config {
	return &sstable.Config{ID: e.id, BlockBytes: e.cfg.tune.block, GroupWords: e.cfg.tune.group, Salt: e.salt}
}

// openTables removes the sstables that do not count and opens the others, several at a time.
// Then it reads their deletion bitmaps.
func (e *Engine) openTables(s *manifest.State) error {
	dir := filepath.Join(e.dir, tablesDir)
	if len(s.Tables) == 0 { // a program that copies a store may leave out empty directories
		if err := vfs.MkdirAll(e.fs, dir); err != nil {
			return err
		}
	}
	if err := e.sweep(s); err != nil {
		return err
	}
	all := make([]*source, len(s.Tables))
	defer func() {
		opened := slices.DeleteFunc(slices.Clone(all), func(src *source) bool { return src == nil })
		e.setTables(e.tables.with(opened, nil))
	}()
	var group errgroup.Group
	group.SetLimit(e.cfg.tune.openers)
	for i, r := range s.Tables {
		group.Go(func() error {
			open, err := sstable.Open(e.fs, dir, r.Number, e.tableConfig())
			if err == nil {
				all[i] = &source{Table: open, area: memtable.Area(r.Area), since: 1, deletions: r.Deletions}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.readDeletions(all)
}

// shut closes whatever is open. If callers were told that the store stopped, it does not
// return the error of the log again.
func (e *Engine) shut(stopped bool) error {
	var errs []error
	if e.compactor != nil {
		e.compactor.wait()
	}
	if e.log != nil {
		if err := e.log.Close(); err != nil && e.broken.Load() == nil && !(stopped && errors.Is(err, wal.ErrStopped)) {
			errs = append(errs, wrap("close", err))
		}
	}
	for _, src := range e.tables.all() {
		errs = append(errs, src.Close())
	}
	if e.memtables != nil {
		e.endFigures()
		e.memtables.Close()
		e.leases.Close()
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
