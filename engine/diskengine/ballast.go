package diskengine

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ballast is a file that only takes up space, given up when the disk is full: then
// no push is accepted until it is back, and what ends messages can still be
// written.
type ballast struct {
	fs   vfs.FS
	name string
	size int64

	mu   sync.Mutex
	held bool
	out  atomic.Bool // it was given up
}

// take makes the file, and reports whether it is there.
func (b *ballast) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held || b.size <= 0 {
		return nil
	}
	f, err := b.fs.Create(b.name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Preallocate(0, b.size), f.Close()); err != nil {
		return errors.Join(err, b.fs.Remove(b.name))
	}
	b.held = true
	b.back()
	return nil
}

// back lets pushes be accepted again.
func (b *ballast) back() {
	b.out.Store(false)
	_ = b.fs.Remove(b.name + givenUp)
}

// drop gives the file up, and reports whether that made room.
func (b *ballast) drop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held || giveUp(b.fs, b.name) != nil {
		return false
	}
	b.held = false
	b.out.Store(true)
	return true
}

// givenUp is what the name of a file ends in that stands for ballast that was given
// up, so that this holds when the directory is opened again.
const givenUp = ".out"

// giveUp removes ballast and leaves the file that says so.
func giveUp(fs vfs.FS, name string) error {
	if err := fs.Remove(name); err != nil {
		return err
	}
	if f, err := fs.Create(name+givenUp, vfs.WriteCategoryUnspecified); err == nil {
		_ = f.Close()
	}
	return nil
}

// load looks whether the ballast is there or was given up.
func (b *ballast) load() {
	_, err := b.fs.Stat(b.name)
	b.held = err == nil
	_, err = b.fs.Stat(b.name + givenUp)
	b.out.Store(err == nil && b.size > 0)
}
