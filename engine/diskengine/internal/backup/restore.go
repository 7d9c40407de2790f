package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/check"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Restore makes a store of a backup, in a directory that is missing or empty. The backup is checked
// before: what is wrong with it is a *disk.DamageError. The runs are shared with it where the file
// system can.
func Restore(f disk.FS, from, to string, cfg *Config) (_ Result, err error) {
	c := cfg.withDefaults()
	if err := vacant(f, to); err != nil {
		return Result{}, err
	}
	p, err := open(f, from, false)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	rep, err := p.check(&c)
	if err != nil {
		return Result{}, err
	}
	if !rep.Sound() {
		first := rep.Findings[0]
		return Result{}, &disk.DamageError{What: ErrDamaged, File: first.File, Offset: max(0, first.Offset), Reason: first.What}
	}
	x := &files{fs: f, pace: c.Pace}
	if err := x.restore(p.generation(p.head.generation), filepath.Clean(to)); err != nil {
		return Result{}, err
	}
	return p.head.result(x.copied), nil
}

// vacant says why a store cannot be restored to a directory.
func vacant(f disk.FS, dir string) error {
	names, err := f.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(names) > 0:
		return fmt.Errorf("%w: %s holds %s", ErrTaken, dir, names[0])
	}
	return nil
}

// restore makes a store of a generation. Its manifest comes last; until then a file beside it says
// that this is no store yet, so that nobody opens it as an empty one.
func (x *files) restore(from, to string) error {
	state, err := manifest.Read(x.fs, from)
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(x.fs, to); err != nil {
		return err
	}
	note := filepath.Join(to, restoring)
	if err := errors.Join(writeFile(x.fs, note, nil), x.fs.SyncDir(to)); err != nil {
		return err
	}
	for _, name := range []string{logName, runsName} {
		if err := x.fs.Mkdir(filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if err := x.fs.SyncDir(to); err != nil {
		return err
	}
	names, err := x.fs.List(filepath.Join(from, logName))
	if err != nil {
		return err
	}
	for _, name := range names { // the store will write to them
		if err := x.copy(filepath.Join(from, logName, name), filepath.Join(to, logName, name)); err != nil {
			return err
		}
	}
	if err := x.fs.SyncDir(filepath.Join(to, logName)); err != nil {
		return err
	}
	if err := x.runs(&state, filepath.Join(from, runsName), "", filepath.Join(to, runsName)); err != nil {
		return err
	}
	if _, err := manifest.Create(x.fs, to, state); err != nil {
		return err
	}
	return errors.Join(x.fs.Remove(note), x.fs.SyncDir(to))
}

// Check checks a backup.
func Check(f disk.FS, dir string, cfg *Config) (_ *check.Report, err error) {
	c := cfg.withDefaults()
	p, err := open(f, dir, false)
	if err != nil {
		return nil, fmt.Errorf("check a backup: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	rep, err := p.check(&c)
	if err != nil {
		return nil, fmt.Errorf("check a backup: %w", err)
	}
	return rep, nil
}

// Is reports whether a directory holds a backup, finished or not.
func Is(f disk.FS, dir string) bool {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	err := p.look()
	var damage *disk.DamageError
	return err == nil && (p.head != nil || len(p.generations) > 0) || errors.As(err, &damage) || errors.Is(err, ErrNewer)
}

// mostEntry is the longest entry that any log may have.
const mostEntry = 1 << 30

// check checks the generation in force: as a store, and that its log ends where it was to.
func (p *place) check(c *Config) (*check.Report, error) {
	h, err := p.inForce()
	if err != nil {
		return nil, err
	}
	dir := p.generation(h.generation)
	rep, err := check.Check(p.fs, dir, &check.Config{Pace: c.Pace})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &disk.DamageError{What: ErrDamaged, File: dir, Reason: "it is empty"}
	}
	if err != nil || !rep.Sound() {
		return rep, err
	}
	state, err := manifest.Read(p.fs, dir)
	if err != nil {
		return nil, err
	}
	found, err := wal.Read(p.fs, filepath.Join(dir, logName), &wal.Config{ID: state.Store, Begun: state.Begun, MaxEntry: mostEntry}, wal.Pos(state.Replay),
		func(e wal.Entry) error { return c.Pace(len(e.Bytes)) })
	if err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) {
		rep.Findings = append(rep.Findings, check.Finding{File: filepath.Join(dir, logName), Offset: -1, What: fmt.Sprintf(format, args...)})
	}
	switch {
	case state.Store != h.store:
		wrong("it is of another store than %s says", filepath.Join(p.dir, Name))
	case uint64(found.End) != h.end:
		wrong("the log ends at position %d; it was copied up to %d", found.End, h.end)
	case found.Torn != nil:
		wrong("the end of the log is broken: %s, offset %d: %s", found.Torn.File, found.Torn.Offset, found.Torn.Reason)
	}
	return rep, nil
}
