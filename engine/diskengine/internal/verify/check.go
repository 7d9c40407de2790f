package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

const lockName = "LOCK" // in the directory of a store

// Config configures a check or a salvage. Nil means all defaults.
type Config struct {
	// Pace is called between slices of the work with the bytes read since the last call. It
	// may wait; its error ends the work. nil: it is not called.
	Pace func(read int) error

	// Tables is the directory of the sstables; empty: the one in the store's directory.
	Tables string

	// Is is what a backup says about the store; nil: it is not of a backup.
	Is *Copied

	segment int64 // bytes of a segment of the log that a salvage makes; 0: the default
}

// Copied is what a backup says about the store in it.
type Copied struct {
	Store  uint64
	LogEnd uint64 // up to where its log was copied
}

// Check checks the store in a directory. It holds the store's lock meanwhile, and returns
// vfs.ErrLocked if a process has the store open. If there is no store it returns an
// fs.ErrNotExist.
func Check(f vfs.FS, dir string, cfg *Config) (rep *Report, err error) {
	err = locked(f, dir, func() (err error) {
		rep, err = check(f, dir, cfg)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check a store: %w", err)
	}
	return rep, nil
}

// locked calls fn while it holds the lock of a store.
func locked(f vfs.FS, dir string, fn func() error) (err error) {
	names, err := f.List(dir)
	if err != nil {
		return err
	}
	if slices.Contains(names, manifest.Restoring) {
		return fmt.Errorf("%s: %w", dir, manifest.ErrRestoring)
	}
	if !slices.ContainsFunc(names, func(n string) bool {
		return n == manifest.Name || n == manifest.LogName || n == manifest.TablesName
	}) {
		return fmt.Errorf("%s holds none: %w", dir, fs.ErrNotExist)
	}
	lock, err := f.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return fn()
}

// reader reads the files of a store.
type reader struct {
	fs        vfs.FS
	dir       string
	pace      func(read int) error
	tablesDir string
	is        *Copied
	rep       *Report
	state     manifest.State
	secret    sstable.Secret
	parts     []*part // the sstables, by number; in a check only sound ones
	items     int     // items of indexes that were read
}

// part is an sstable of a store.
type part struct {
	number   uint64 // its number in the store that is read
	is       manifest.Table
	table    *sstable.Table    // the one that counts; nil: not yet, or none
	salvaged *sstable.Salvaged // nil: it is sound, or lost
	lost     bool
}

func (p *part) area() memtable.Area { return memtable.Area(p.is.Area) }

func newReader(f vfs.FS, dir string, cfg *Config) *reader {
	r := &reader{fs: f, dir: dir, tablesDir: filepath.Join(dir, manifest.TablesName), pace: func(int) error { return nil }, rep: new(Report)}
	if cfg != nil {
		r.is, r.tablesDir = cfg.Is, cmp.Or(cfg.Tables, r.tablesDir)
		if cfg.Pace != nil {
			r.pace = cfg.Pace
		}
	}
	return r
}

func (r *reader) path(name string) string { return filepath.Join(r.dir, name) }

func (r *reader) logDir() string { return r.path(manifest.LogName) }

func (r *reader) close() (err error) {
	for _, p := range r.parts {
		if p.table != nil {
			err = errors.Join(err, p.table.Close())
		}
		if p.salvaged != nil {
			err = errors.Join(err, p.salvaged.Close())
		}
	}
	return err
}

// check is Check without the lock.
func check(f vfs.FS, dir string, cfg *Config) (*Report, error) {
	r := newReader(&surface{FS: f}, dir, cfg)
	err := r.all()
	if err = errors.Join(err, r.close()); err != nil {
		return nil, err
	}
	return r.rep, nil
}

// all checks the whole store.
func (r *reader) all() (err error) {
	if r.state, err = manifest.Read(r.fs, r.dir); err != nil {
		return r.wrong(err, r.path(manifest.Name))
	}
	r.secret = r.state.Secret
	if err := r.leftovers(); err != nil {
		return err
	}
	for _, is := range r.state.Tables {
		if err := r.checkTable(is); err != nil {
			return err
		}
	}
	c := newContents(r)
	if err := c.replay(); err != nil {
		return err
	}
	if !r.rep.Sound() {
		return nil // one fault would be found again wherever it matters
	}
	if err := c.together(); err != nil {
		return r.wrong(err, r.tablesDir)
	}
	if r.rep.Sound() {
		c.count()
	}
	return nil
}

// wrong notes an error that says that a file is damaged or missing, and returns any other
// error.
func (r *reader) wrong(err error, file string) error {
	var damage *vfs.DamageError
	switch {
	case errors.As(err, &damage):
		r.rep.add(damage.File, damage.Offset, "%s", damage.Reason)
	case errors.Is(err, fs.ErrNotExist):
		r.rep.add(file, -1, "it is missing")
	default:
		return err
	}
	return nil
}

// paced calls fn for an item of an index, and pace now and then.
func (r *reader) paced(fn func() error) error {
	const often = 4096
	if r.items++; r.items%often == 0 {
		if err := r.pace(often * 16); err != nil {
			return err
		}
	}
	return fn()
}

// leftovers lists the files that nothing names.
func (r *reader) leftovers() error {
	named := map[string]bool{}
	for _, is := range r.state.Tables {
		named[sstable.Name(r.tablesDir, is.Number)] = true
	}
	names, err := r.fs.List(r.tablesDir)
	if err != nil {
		if len(r.state.Tables) > 0 || !errors.Is(err, fs.ErrNotExist) {
			return r.wrong(err, r.tablesDir)
		}
	}
	for _, name := range names {
		_, isTable := sstable.ParseName(name)
		if path := filepath.Join(r.tablesDir, name); isTable && !named[path] {
			r.rep.Leftovers = append(r.rep.Leftovers, path)
		}
	}
	names, err = r.fs.List(r.dir)
	if slices.Contains(names, manifest.NewName) {
		r.rep.Leftovers = append(r.rep.Leftovers, r.path(manifest.NewName))
	}
	return err
}
