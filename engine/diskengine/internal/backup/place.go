package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// place is the directory of a backup, locked.
type place struct {
	fs   disk.FS
	dir  string
	lock io.Closer

	head        *head    // nil: none is in force
	spoilt      error    // the head is there, and damaged
	generations []uint64 // that there are, also unfinished ones
	begun       bool     // there is something, if only what a first backup left that failed
}

// open opens the directory of a backup. One that is missing is made, if it may be.
func open(f disk.FS, dir string, make bool) (_ *place, err error) {
	p := &place{fs: f, dir: filepath.Clean(dir)}
	if make {
		if err := disk.MkdirAll(f, p.dir); err != nil {
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

func (p *place) close() error { return p.lock.Close() }

// look looks what there is.
func (p *place) look() error {
	names, err := p.fs.List(p.dir)
	if err != nil {
		return err
	}
	p.head, p.spoilt, p.generations, p.begun = nil, nil, nil, len(names) > 0
	for _, name := range names {
		n, ok := parseGeneration(name)
		switch {
		case ok:
			p.generations = append(p.generations, n)
		case name == Name:
			h, err := p.readHead()
			var damage *disk.DamageError
			if errors.As(err, &damage) {
				p.spoilt = err
				continue
			}
			if err != nil {
				return err
			}
			p.head = &h
		case name != newName && name != lockName && name != disk.HolderName:
			return fmt.Errorf("%w: %s holds %s", ErrNone, p.dir, name)
		}
	}
	return nil
}

func (p *place) readHead() (head, error) {
	name := filepath.Join(p.dir, Name)
	b, err := readFile(p.fs, name, headSize+1)
	if err != nil {
		return head{}, err
	}
	h, off, reason, err := decode(b)
	if reason != "" {
		err = &disk.DamageError{What: ErrDamaged, File: name, Offset: off, Reason: reason}
	}
	return h, err
}

// inForce is the head of a backup that there has to be.
func (p *place) inForce() (*head, error) {
	if p.spoilt != nil {
		return nil, p.spoilt
	}
	if p.head == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnfinished, p.dir)
	}
	if !slices.Contains(p.generations, p.head.generation) {
		return nil, &disk.DamageError{What: ErrDamaged, File: p.generation(p.head.generation), Reason: "it is missing"}
	}
	return p.head, nil
}

// install puts a head in force, durably. unsure says that after the error it may be so or not.
func (p *place) install(h head) (unsure bool, err error) {
	name, made := filepath.Join(p.dir, Name), filepath.Join(p.dir, newName)
	if err := p.fs.SyncDir(p.dir); err != nil { // the generation's name
		return false, err
	}
	if err := p.fs.Remove(made); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := writeFile(p.fs, made, h.encode()); err != nil {
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

// sweep removes the generations that are not in force. What is in force is made durable before: it
// may be that its name never was.
func (p *place) sweep() error {
	var old []uint64
	for _, n := range p.generations {
		if p.head == nil || n != p.head.generation {
			old = append(old, n)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if err := p.fs.SyncDir(p.dir); err != nil {
		return err
	}
	var errs []error
	for _, n := range old {
		errs = append(errs, p.remove(n))
	}
	return errors.Join(append(errs, p.fs.SyncDir(p.dir))...)
}

// remove removes a generation.
func (p *place) remove(n uint64) error {
	dir := p.generation(n)
	for _, sub := range []string{logName, runsName, ""} {
		at := filepath.Join(dir, sub)
		names, err := p.fs.List(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := p.fs.Remove(filepath.Join(at, name)); err != nil {
				return err
			}
		}
	}
	if err := p.fs.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.generations = slices.DeleteFunc(p.generations, func(o uint64) bool { return o == n })
	return nil
}
