package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// place is the directory of a backup, locked.
type place struct {
	fs   vfs.FS
	dir  string
	lock io.Closer

	head    *head    // nil: no number counts
	headErr error    // why the head cannot be read; nil: it can, or there is none
	numbers []uint64 // all numbers, unfinished ones too
	begun   bool     // the directory is not empty; it may have only the rest of a failed first backup
}

// open opens and locks the directory of a backup. If make is set, it makes one that is
// missing.
func open(f vfs.FS, dir string, make bool) (_ *place, err error) {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	if make {
		if err := vfs.MkdirAll(f, p.dir); err != nil {
			return nil, err
		}
	}
	if err := p.look(); err != nil {
		return nil, err
	}
	if !make && !p.begun {
		return nil, fmt.Errorf("%w: %s", ErrNone, p.dir)
	}
	if p.lock, err = f.Lock(filepath.Join(p.dir, lockName)); err != nil {
		return nil, err
	}
	if err := p.look(); err != nil { // it may have changed until then
		return nil, errors.Join(err, p.lock.Close())
	}
	return p, nil
}

// look reads what the directory has.
func (p *place) look() error {
	names, err := p.fs.List(p.dir)
	if err != nil {
		return err
	}
	p.head, p.headErr, p.numbers, p.begun = nil, nil, nil, len(names) > 0
	for _, name := range names {
		n, ok := numbers.Parse(name)
		switch {
		case ok:
			p.numbers = append(p.numbers, n)
		case name == Name:
			h, err := p.readHead()
			if errors.As(err, new(*vfs.DamageError)) {
				p.headErr = err
				continue
			}
			if err != nil {
				return err
			}
			p.head = &h
		case !slices.Contains([]string{newName, lockName, vfs.HolderName, sstablesName}, name):
			return fmt.Errorf("%w: %s holds %s", ErrNone, p.dir, name)
		}
	}
	return nil
}

func (p *place) readHead() (h head, err error) {
	name := filepath.Join(p.dir, Name)
	b, _, err := vfs.ReadStart(p.fs, name, headSize+1)
	if err != nil {
		return h, err
	}
	h, off, reason, err := decode(b)
	if reason != "" {
		err = &vfs.DamageError{What: ErrDamaged, File: name, Offset: off, Reason: reason}
	}
	return h, err
}

// counts returns the head; a backup without one, or without the number that counts, is an
// error.
func (p *place) counts() (*head, error) {
	if p.headErr != nil {
		return nil, p.headErr
	}
	if p.head == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnfinished, p.dir)
	}
	if !slices.Contains(p.numbers, p.head.number) {
		return nil, &vfs.DamageError{What: ErrDamaged, File: p.numbered(p.head.number), Reason: "it is missing"}
	}
	return p.head, nil
}

// install makes a head count, durably. unsure says that after the error it may count or not.
func (p *place) install(h head) (unsure bool, err error) {
	name, made := filepath.Join(p.dir, Name), filepath.Join(p.dir, newName)
	if err := p.fs.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := vfs.WriteFile(p.fs, made, h.encode()); err != nil {
		return false, err
	}
	if err := p.fs.SyncDir(p.dir); err != nil { // first the names of all that the head needs
		return false, err
	}
	if err := p.fs.Rename(made, name); err != nil {
		return true, err
	}
	if err := p.fs.SyncDir(p.dir); err != nil {
		return true, err
	}
	p.head = &h
	return false, nil
}

// sweep removes all that does not count. had is the manifest that counts, if it can be read.
// First sweep makes the name of the head durable, which it may not be yet.
func (p *place) sweep() (had *manifest.State, err error) {
	if err := p.fs.SyncDir(p.dir); err != nil {
		return nil, err
	}
	for _, n := range slices.Clone(p.numbers) {
		if p.head != nil && n == p.head.number {
			continue
		}
		if err := p.remove(n); err != nil {
			return nil, err
		}
	}
	if p.head != nil {
		state, err := manifest.Read(p.fs, p.numbered(p.head.number))
		if errors.As(err, new(*vfs.DamageError)) || errors.Is(err, fs.ErrNotExist) {
			return nil, nil // keep all files that may be part of it
		}
		if err != nil {
			return nil, err
		}
		had = &state
	}
	named := map[string]bool{}
	if had != nil {
		for _, r := range had.Tables {
			named[sstable.Name("", r.Number)] = true
		}
	}
	err = vfs.Sweep(p.fs, p.sstables(), func(name string) bool { return !named[name] })
	if err == nil && p.head == nil {
		err = p.fs.Remove(p.sstables())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return had, err
}

// remove removes the directory of a number.
func (p *place) remove(n uint64) error {
	dir := p.numbered(n)
	for _, at := range []string{filepath.Join(dir, manifest.LogName), dir} {
		err := vfs.Sweep(p.fs, at, func(name string) bool { return name != manifest.LogName })
		if err == nil {
			err = p.fs.Remove(at)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	p.numbers = slices.DeleteFunc(p.numbers, func(o uint64) bool { return o == n })
	return nil
}
