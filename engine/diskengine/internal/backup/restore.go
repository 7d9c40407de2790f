package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

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
	h, err := p.inForce()
	if err != nil {
		return Result{}, err
	}
	rep, err := p.check(&c, h)
	if err != nil {
		return Result{}, err
	}
	if !rep.Sound() {
		first := rep.Findings[0]
		return Result{}, &disk.DamageError{What: ErrDamaged, File: first.File, Offset: max(0, first.Offset), Reason: first.What}
	}
	x := &files{fs: f, pace: c.Pace}
	if err := x.restore(p.generation(h.generation), filepath.Clean(to)); err != nil {
		return Result{}, err
	}
	return h.result(x.copied), nil
}

// Salvage is Restore of what can be read of a backup, also of one that is damaged: then all there is of
// it is copied, and check.Rescue makes a store of that in its place. Where it cannot be read which
// generation is in force, the oldest one that was finished is taken; when it was taken is not known then.
func Salvage(f disk.FS, from, to string, cfg *Config) (_ Result, saved check.Rescued, err error) {
	c := cfg.withDefaults()
	to = filepath.Clean(to)
	if err := vacant(f, to); err != nil {
		return Result{}, saved, err
	}
	p, err := open(f, from, false)
	if err != nil {
		return Result{}, saved, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	h, err := p.best()
	if err != nil {
		return Result{}, saved, err
	}
	rep, err := p.check(&c, h)
	if err != nil {
		return Result{}, saved, err
	}
	x := &files{fs: f, pace: c.Pace}
	if rep.Sound() {
		saved.After = rep
		err = x.restore(p.generation(h.generation), to)
	} else {
		saved, err = x.rescue(p.generation(h.generation), to, rep)
	}
	out := Result{Files: x.n, Bytes: x.bytes, Copied: x.copied}
	if h.store != 0 {
		out.Taken = h.result(0).Taken
	} else {
		saved.Notes = append(saved.Notes, "which backup counts could not be read: whether the end of its log is missing cannot be told")
	}
	return out, saved, err
}

// rescue makes a store of what can be read of a generation.
func (x *files) rescue(from, to string, found *check.Report) (check.Rescued, error) {
	plain := x.fs
	x.fs = check.Zeroed(plain)
	if err := x.salvage(from, to); err != nil {
		return check.Rescued{}, err
	}
	saved, err := check.Rescue(plain, to, &check.Config{Pace: x.pace}, func([]check.Loss) error { return nil })
	if err != nil {
		return saved, err
	}
	if len(saved.Losses) == 0 { // it is sound as a store, and not what was backed up
		for _, w := range found.Findings {
			saved.Losses = append(saved.Losses, check.Loss{File: w.File, Offset: w.Offset, What: w.What, Messages: -1, Again: true})
		}
	}
	return saved, errors.Join(plain.Remove(filepath.Join(to, Restoring)), plain.SyncDir(to))
}

// best is the head of the generation in force, or of the one that is most likely so.
func (p *place) best() (*head, error) {
	h, err := p.inForce()
	var damage *disk.DamageError
	if !errors.As(err, &damage) && !errors.Is(err, ErrUnfinished) {
		return h, err
	}
	slices.Sort(p.generations)
	for _, n := range p.generations {
		if names, lerr := p.fs.List(p.generation(n)); lerr == nil && slices.Contains(names, manifest.Name) { // which comes last
			return &head{generation: n}, nil
		}
	}
	return nil, err
}

// salvage makes a directory of all files of a generation, sound or not. Its manifest comes last, and it
// keeps the file that says that it is no store yet.
func (x *files) salvage(from, to string) error {
	if err := disk.MkdirAll(x.fs, to); err != nil {
		return err
	}
	if err := errors.Join(writeFile(x.fs, filepath.Join(to, Restoring), nil), x.fs.SyncDir(to)); err != nil {
		return err
	}
	for _, sub := range []string{logName, runsName, ""} {
		names, err := x.fs.List(filepath.Join(from, sub))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if sub != "" {
			if err := x.fs.Mkdir(filepath.Join(to, sub)); err != nil {
				return err
			}
		}
		for _, name := range names {
			old, made := filepath.Join(from, sub, name), filepath.Join(to, sub, name)
			switch {
			case sub == runsName:
				_, err = x.link(old, "", made)
			case name == manifest.Name, strings.HasSuffix(name, ".log"): // the store will write to them
				err = x.copy(old, made)
			}
			if err != nil {
				return err
			}
		}
		if err := x.fs.SyncDir(filepath.Join(to, sub)); err != nil {
			return err
		}
	}
	return nil
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
	note := filepath.Join(to, Restoring)
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
	if err := x.runs(&state, filepath.Join(from, runsName), "", filepath.Join(to, runsName), false); err != nil {
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
	h, err := p.inForce()
	if err != nil {
		return nil, fmt.Errorf("check a backup: %w", err)
	}
	rep, err := p.check(&c, h)
	if err != nil {
		return nil, fmt.Errorf("check a backup: %w", err)
	}
	return rep, nil
}

// Is reports whether a directory holds a backup, finished or not, or what a first one left that failed.
func Is(f disk.FS, dir string) bool {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	err := p.look()
	return err == nil && p.begun || errors.Is(err, ErrNewer)
}

// Finished reports whether a directory holds a backup that was put in force once, sound or not.
func Finished(f disk.FS, dir string) bool {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	err := p.look()
	return err == nil && (p.head != nil || p.spoilt != nil) || errors.Is(err, ErrNewer)
}

// mostEntry is the longest entry that any log may have.
const mostEntry = 1 << 30

// check checks a generation: as a store, and that its log ends where it was to, if that is known.
func (p *place) check(c *Config, h *head) (*check.Report, error) {
	dir := p.generation(h.generation)
	rep, err := check.Check(p.fs, dir, &check.Config{Pace: c.Pace})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &disk.DamageError{What: ErrDamaged, File: dir, Reason: "it is empty"}
	}
	if err != nil || !rep.Sound() || h.store == 0 {
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
