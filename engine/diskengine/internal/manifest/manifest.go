package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// The names of the manifest, and of the next one while it is written.
const (
	Name    = "MANIFEST"
	NewName = "MANIFEST.new"
)

var (
	// ErrDamaged says that the manifest cannot be read. The error is a *vfs.DamageError.
	ErrDamaged = errors.New("the manifest is damaged")

	// ErrFailed says that an earlier Write failed midway.
	ErrFailed = errors.New("an earlier write of the manifest failed and it is not known which one counts; open the store again")
)

// Manifest is the manifest of an open store. Its methods are for one goroutine at a time.
type Manifest struct {
	fs    vfs.FS
	dir   string
	state State
	err   error
}

// Read reads the manifest of a store. If there is none it returns an fs.ErrNotExist. With a
// *vfs.DamageError it returns what can be read: a State without some deletion bitmaps or, if its
// NextID is 0, nothing.
func Read(f vfs.FS, dir string) (State, error) {
	b, err := read(f, filepath.Join(dir, Name))
	if err != nil {
		return State{}, fmt.Errorf("read the manifest: %w", err)
	}
	return parse(filepath.Join(dir, Name), b)
}

func parse(name string, b []byte) (State, error) {
	state, off, reason, err := decode(b)
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", name, err)
	}
	if reason != "" {
		return state, &vfs.DamageError{What: ErrDamaged, File: name, Offset: off, Reason: reason}
	}
	return state, nil
}

// Open reads the manifest of a store as Read does, in a directory that no other process uses.
// The rename of that manifest may not be durable. So Open writes it once more, or, if the disk
// is full, syncs the directory.
func Open(f vfs.FS, dir string) (*Manifest, error) {
	state, err := Read(f, dir)
	if err != nil {
		return nil, err
	}
	m := &Manifest{fs: f, dir: dir, state: state}
	err = m.Write(state)
	if vfs.IsFull(err) && m.err == nil {
		err = f.SyncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open the manifest: %w", err)
	}
	return m, nil
}

// Create writes the first manifest of a store. If there is one already it returns an
// fs.ErrExist.
func Create(f vfs.FS, dir string, first State) (*Manifest, error) {
	names, err := f.List(dir)
	if err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	for _, name := range names {
		if name == Name {
			return nil, fmt.Errorf("make a manifest: %s: %w", filepath.Join(dir, Name), fs.ErrExist)
		}
	}
	m := &Manifest{fs: f, dir: dir}
	if err := m.Write(first); err != nil {
		return nil, err
	}
	return m, nil
}

// State is what the manifest in force says. It must not be changed.
func (m *Manifest) State() State { return m.state }

// Write replaces the state, and returns when the new one is durable. After an error the old
// one counts, unless the error is ErrFailed, which every later Write returns too.
func (m *Manifest) Write(s State) error {
	if m.err != nil {
		return m.err
	}
	s = s.Clone()
	if err := s.check(); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	name, next := filepath.Join(m.dir, Name), filepath.Join(m.dir, NewName)
	if err := m.fs.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := vfs.WriteFile(m.fs, next, s.encode()); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	err := m.fs.Rename(next, name)
	if err == nil {
		err = m.fs.SyncDir(m.dir)
	} else if names, lerr := m.fs.List(m.dir); vfs.IsFull(err) && lerr == nil && slices.Contains(names, NewName) {
		return fmt.Errorf("write the manifest: %w", err) // nothing was renamed
	}
	if err != nil {
		m.err = fmt.Errorf("%w: %w", ErrFailed, err)
		return m.err
	}
	m.state = s
	return nil
}

func read(fs vfs.FS, name string) (b []byte, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxSize {
		return nil, &vfs.DamageError{What: ErrDamaged, File: name, Offset: maxSize, Reason: "it is longer than any manifest"}
	}
	b = make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}
