package backup

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// with calls fn with a backup and its head. The backup is locked meanwhile.
func with(f vfs.FS, dir string, fn func(p *place, h *head) error) error {
	p, err := open(f, dir, false)
	if err != nil {
		return err
	}
	h, err := p.counts()
	if err == nil {
		err = fn(p, h)
	}
	return errors.Join(err, p.lock.Close())
}

// Restore makes a store of a backup, in a directory that is missing or empty. It checks the
// backup first: a damaged one is a *vfs.DamageError. The store shares the sstables with the
// backup if the file system can.
func Restore(f vfs.FS, from, to string, pace func(bytes int) error) (out Result, err error) {
	if err := manifest.Vacant(f, to); err != nil {
		return out, err
	}
	err = with(f, from, func(p *place, h *head) error {
		rep, err := p.check(h, pace)
		if err != nil {
			return err
		}
		if !rep.Sound() {
			first := rep.Findings[0]
			return &vfs.DamageError{What: ErrDamaged, File: first.File, Offset: max(0, first.Offset), Reason: first.What}
		}
		copied, err := p.restore(h, filepath.Clean(to), pace)
		if err == nil {
			out = h.result(copied)
		}
		return err
	})
	return out, err
}

// restore makes a store of the number that counts.
func (p *place) restore(h *head, to string, pace func(int) error) (copied int64, err error) {
	state, err := manifest.Read(p.fs, p.numbered(h.number))
	if err != nil {
		return 0, err
	}
	if err := manifest.Prepare(p.fs, to); err != nil {
		return 0, err
	}
	log, tables := filepath.Join(to, manifest.LogName), filepath.Join(to, manifest.TablesName)
	from := filepath.Join(p.numbered(h.number), manifest.LogName)
	names, err := p.fs.List(from)
	if err != nil {
		return 0, err
	}
	for _, name := range names { // not linked: the store will write to them
		n, err := vfs.Copy(p.fs, filepath.Join(from, name), filepath.Join(log, name), math.MaxInt64, pace)
		if copied += n; err != nil {
			return copied, err
		}
	}
	for _, r := range state.Tables {
		n, err := vfs.LinkOrCopy(p.fs, sstable.Name(p.sstables(), r.Number), sstable.Name(tables, r.Number), pace)
		if copied += n; err != nil {
			return copied, err
		}
	}
	if err = errors.Join(p.fs.SyncDir(log), p.fs.SyncDir(tables)); err != nil {
		return copied, err
	}
	return copied, manifest.Complete(p.fs, to, state)
}

// Check checks a backup.
func Check(f vfs.FS, dir string, pace func(bytes int) error) (rep *verify.Report, err error) {
	err = with(f, dir, func(p *place, h *head) error {
		rep, err = p.check(h, pace)
		return err
	})
	return rep, err
}

// check checks the number that counts: as a store, and that its log ends where the head says.
func (p *place) check(h *head, pace func(int) error) (*verify.Report, error) {
	dir := p.numbered(h.number)
	rep, err := verify.Check(p.fs, dir, p.config(h, pace))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &vfs.DamageError{What: ErrDamaged, File: dir, Reason: "it is empty"}
	}
	if rep != nil {
		rep.Leftovers = nil // a backup that was cut off left them: the next one removes them
	}
	return rep, err
}

func (p *place) config(h *head, pace func(int) error) *verify.Config {
	c := &verify.Config{Pace: pace, Tables: p.sstables()}
	if h.store != 0 {
		c.Is = &verify.Copied{Store: h.store, LogEnd: h.end}
	}
	return c
}

// Salvage makes a store of what can be read of a backup, as verify.Salvage does of a store. If
// it cannot be read which number counts, it takes the oldest finished one.
func Salvage(f vfs.FS, from, to string, pace func(bytes int) error, tell func(*verify.Salvaged) error) (out verify.Salvaged, err error) {
	p, err := open(f, from, false)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, p.lock.Close()) }()
	h, err := p.best()
	if err != nil {
		return out, err
	}
	return verify.Salvage(f, p.numbered(h.number), filepath.Clean(to), p.config(h, pace), func(out *verify.Salvaged) error {
		if h.store == 0 {
			out.Notes = append(out.Notes, "which backup counts could not be read: whether the end of its log is missing cannot be told")
		}
		return tell(out)
	})
}

// best returns the head, or makes one of the number that most likely counts.
func (p *place) best() (*head, error) {
	h, err := p.counts()
	if !errors.As(err, new(*vfs.DamageError)) && !errors.Is(err, ErrUnfinished) {
		return h, err
	}
	slices.Sort(p.numbers)
	for _, n := range p.numbers {
		if names, lerr := p.fs.List(p.numbered(n)); lerr == nil && slices.Contains(names, manifest.Name) { // written last
			return &head{number: n}, nil
		}
	}
	return nil, err
}

// Is reports whether a directory holds a backup, finished or not, or the rest of a failed
// first one.
func Is(f vfs.FS, dir string) bool {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	err := p.look()
	return err == nil && p.begun || errors.Is(err, vfs.ErrVersion)
}
