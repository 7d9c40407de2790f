package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Source is a store as of an instant. Its files stay where they are until Take returns.
type Source struct {
	State manifest.State
	Runs  string    // the directory of runs and marks
	Taken time.Time // the instant

	// Log copies the log, from where it is replayed on, to a directory that is empty.
	Log func(dir string) (wal.Copied, error)
}

// Config is how a backup is made, restored or checked. Nil works.
type Config struct {
	// Pace is called between slices of the work with the bytes that were read or written since
	// the last call. It may wait; an error of it ends the work. nil: nothing.
	Pace func(bytes int) error

	// Left is called with an error when what is not needed any more could not be removed: the
	// next Take tries again. nil: nothing.
	Left func(error)
}

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	if d.Pace == nil {
		d.Pace = func(int) error { return nil }
	}
	if d.Left == nil {
		d.Left = func(error) {}
	}
	return d
}

// Result tells of a backup that was made or restored.
type Result struct {
	Taken  time.Time // the instant of the store that it holds
	Files  int       // it consists of
	Bytes  int64     // in them
	Copied int64     // of these bytes that were written; the others are shared
}

// Take brings the backup in a directory to what a store is now. The directory is made when it is
// missing. What the generation in force has not yet is read again before the new one is put in force:
// a store that is damaged is a *disk.DamageError with ErrSource, or ErrCopy where only a copy is. After
// an error the backup is what it was before, or, where the disk does not say, one or
// the other. A backup that goes on where the store does not is refused with ErrLater.
func Take(f disk.FS, dir string, src Source, cfg *Config) (_ Result, err error) {
	c := cfg.withDefaults()
	p, err := open(f, dir, true)
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if p.spoilt != nil {
		return Result{}, fmt.Errorf("back up: %w", p.spoilt)
	}
	if p.head != nil && p.head.store != src.State.Store {
		return Result{}, fmt.Errorf("back up: %w: %s", ErrOther, p.dir)
	}
	if err := p.sweep(); err != nil {
		return Result{}, fmt.Errorf("back up: remove what an unfinished backup left: %w", err)
	}
	h := head{store: src.State.Store, generation: 1, taken: src.Taken.UnixMilli()}
	before := ""
	if p.head != nil {
		h.generation = p.head.generation + 1
		before = p.generation(p.head.generation)
	}
	x := &files{fs: f, pace: c.Pace}
	p.generations = append(p.generations, h.generation)
	unsure := false
	if err = p.fill(x, &h, before, src); err == nil {
		h.bytes, h.files = uint64(x.bytes), uint64(x.n)
		unsure, err = p.install(h)
	}
	if !unsure {
		if lerr := p.sweep(); lerr != nil {
			c.Left(lerr)
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("back up: %w", err)
	}
	return h.result(x.copied), nil
}

func (h *head) result(copied int64) Result {
	return Result{Taken: time.UnixMilli(h.taken).UTC(), Files: int(h.files), Bytes: int64(h.bytes), Copied: copied}
}

// fill makes a generation durable, but for its name.
func (p *place) fill(x *files, h *head, before string, src Source) error {
	dir := p.generation(h.generation)
	for _, d := range []string{dir, filepath.Join(dir, logName), filepath.Join(dir, runsName)} {
		if err := p.fs.Mkdir(d); err != nil {
			return err
		}
	}
	copied, err := src.Log(filepath.Join(dir, logName))
	var damage *disk.DamageError
	if errors.As(err, &damage) { // it is verified as it is copied
		return &disk.DamageError{What: ErrSource, File: damage.File, Offset: damage.Offset, Reason: damage.Reason}
	}
	if err != nil {
		return err
	}
	if h.end = uint64(copied.End); p.head != nil && h.end < p.head.end { // a log never gets shorter
		return fmt.Errorf("%w: %s", ErrLater, p.dir)
	}
	x.n, x.bytes, x.copied = x.n+copied.Files, x.bytes+copied.Bytes, x.copied+copied.Bytes
	if before != "" {
		before = filepath.Join(before, runsName)
	}
	if err := x.runs(&src.State, src.Runs, before, filepath.Join(dir, runsName), true); err != nil {
		return err
	}
	state := src.State.Clone()
	state.Log = 0 // as it has been copied
	_, err = manifest.Create(p.fs, dir, state)
	return err
}

// runs puts the runs and marks of a store into a directory that is empty, durably, and verifies those
// that are fresh if it is to.
func (x *files) runs(s *manifest.State, from, like, to string, verify bool) error {
	done := map[uint64]bool{0: true}
	put := func(kind *kind, number uint64) error {
		same := ""
		if like != "" {
			same = kind.name(like, number)
		}
		copied := x.copied
		fresh, err := x.link(kind.name(from, number), same, kind.name(to, number))
		if errors.Is(err, fs.ErrNotExist) && verify {
			err = &disk.DamageError{What: ErrSource, File: kind.name(from, number), Reason: "it is missing"}
		}
		if err == nil && fresh && verify {
			err = x.verify(kind, s.Store, number, from, to, x.copied > copied)
		}
		if err != nil {
			return err
		}
		return x.pace(0)
	}
	for _, r := range s.Runs {
		if err := put(&ofRuns, r.Number); err != nil {
			return err
		}
		if done[r.Marks] {
			continue
		}
		done[r.Marks] = true
		if err := put(&ofMarks, r.Marks); err != nil {
			return err
		}
	}
	return x.fs.SyncDir(to)
}
