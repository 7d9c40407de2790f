package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/marks"
	"github.com/tarryhq/tarry/engine/diskengine/internal/recent"
	"github.com/tarryhq/tarry/engine/diskengine/internal/run"
)

// damagedSuffix is what the name of a file gets in whose place there is another.
const damagedSuffix = ".damaged"

// Repair mends what can be mended without losing anything, and says what it did: files that nothing
// names are removed, and a run all of whose entries can be read is written anew from them. The
// old one stays, with ".damaged" behind its name, but where the repair was cut off and done again.
// What else is wrong is left alone: after is what a check finds then. As Check it has the store's lock; an error leaves the store as it was, or
// mended in part.
//
// Where the log, the marks or the manifest are damaged no run is written anew: they say who of
// it is alive.
func Repair(f disk.FS, dir string, cfg *Config) (done []string, after *Report, err error) {
	err = locked(f, dir, func() error {
		c := newChecker(f, dir, cfg)
		if err := c.all(); err != nil {
			return err
		}
		r := repair{checker: c}
		err := r.mend()
		if done = r.done; err != nil {
			return err
		}
		again := newChecker(f, dir, cfg)
		after = again.rep
		return again.all()
	})
	if err != nil {
		return done, nil, fmt.Errorf("repair a store: %w", err)
	}
	return done, after, nil
}

type repair struct {
	*checker
	done []string
	next manifest.State
	old  []string // runs in whose place there are others
}

func (r *repair) did(format string, args ...any) {
	r.done = append(r.done, fmt.Sprintf(format, args...))
}

func (r *repair) mend() error {
	if r.state.NextFile == 0 {
		return nil // the manifest cannot be read
	}
	if len(r.sick) > 0 && len(r.rep.Findings) == len(r.sick) && r.rep.More == 0 {
		if err := r.runsAnew(); err != nil {
			return err
		}
	}
	for _, name := range r.rep.Leftovers {
		if err := remove(r.fs, name); err != nil {
			return err
		}
		r.did("%s: removed, since nothing names it", name)
	}
	if len(r.done) == 0 {
		return nil
	}
	err := r.fs.SyncDir(r.path(runsName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is missing
	}
	return errors.Join(err, r.fs.SyncDir(r.dir))
}

// runsAnew writes those runs anew of which all entries can be read.
func (r *repair) runsAnew() error {
	r.next = r.state.Clone()
	r.next.NextFile = r.file
	for _, number := range r.sick {
		m, _ := r.state.Run(number)
		if err := r.anew(m); err != nil && !errors.Is(err, errLost) {
			return err
		}
	}
	if len(r.old) == 0 {
		return nil
	}
	man, err := manifest.Open(r.fs, r.dir)
	if err != nil {
		return err
	}
	if err := man.Write(r.next); err != nil {
		return err
	}
	for _, name := range r.old {
		if err := r.fs.Rename(name, name+damagedSuffix); err != nil {
			return err
		}
	}
	r.state, r.rep.Leftovers = r.next, nil
	return r.leftovers()
}

// errLost says that a run cannot be written anew without losing something.
var errLost = errors.New("some of the run cannot be read")

// lost is errLost for damage, and for a file that is missing.
func lost(err error) error {
	var damage *disk.DamageError
	if errors.As(err, &damage) || errors.Is(err, fs.ErrNotExist) {
		return errLost
	}
	return err
}

// anew writes a run anew, and who of it has died.
func (r *repair) anew(m manifest.Run) (err error) {
	dir, cfg := r.path(runsName), &run.Config{ID: r.state.Store, Pace: r.pace}
	old, err := run.Salvage(r.fs, dir, m.Number, cfg, m.Entries)
	if err != nil {
		return lost(err)
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	if len(old.Holes) > 0 || old.Read() != m.Entries {
		return errLost
	}
	is := m
	is.Number, is.Marks = r.next.NextFile, 0
	made, err := r.copied(old, is, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	r.next.NextFile++
	is.Bytes = uint64(made.Bytes())
	if m.Marks != 0 {
		if err := marks.Restore(r.fs, dir, m.Marks, r.state.Store, []*run.Run{old.Run}); err != nil {
			return err
		}
		for pos := range old.Len() {
			if !old.Alive(pos) {
				made.Kill(pos)
			}
		}
		is.Marks = r.next.NextFile
		r.next.NextFile++
		if _, err := marks.Write(r.fs, dir, is.Marks, r.state.Store, []*run.Run{made}, r.pace); err != nil {
			return err
		}
	}
	r.take(m.Number, is)
	name := run.Name(dir, m.Number)
	r.old = append(r.old, name)
	r.did("%s: written anew as %s, with all its %d entries; what it was is kept with %s behind its name", name, run.Name(dir, is.Number), is.Entries, damagedSuffix)
	return nil
}

// copied writes the entries of a run to another one, at the same positions.
func (r *repair) copied(old *run.Salvaged, is manifest.Run, cfg *run.Config) (*run.Run, error) {
	w, err := run.Create(r.fs, r.path(runsName), is.Number, cfg)
	if err != nil {
		return nil, err
	}
	err = old.Each(func(e run.Entry, _ bool) error {
		key, err := r.keyOf(recent.Area(is.Area), e)
		if err != nil {
			return errLost
		}
		return w.Add(e.Place, key, e.Value)
	})
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	made, err := w.Finish()
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return made, nil
}

// remove removes a file, or a directory of files.
func remove(f disk.FS, name string) error {
	if _, isLog := manifest.ParseLogName(filepath.Base(name)); !isLog {
		return f.Remove(name)
	}
	if err := disk.Sweep(f, name, func(string) bool { return true }); err != nil {
		return err
	}
	return f.Remove(name)
}

// take puts a run in the place of another. Its number is the highest.
func (r *repair) take(number uint64, is manifest.Run) {
	runs := r.next.Runs[:0]
	for _, m := range r.next.Runs {
		if m.Number != number {
			runs = append(runs, m)
		}
	}
	r.next.Runs = append(runs, is)
}
