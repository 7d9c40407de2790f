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
	b.out.Store(false)
	return nil
}

// drop gives the file up, and reports whether that made room.
func (b *ballast) drop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.held || b.fs.Remove(b.name) != nil {
		return false
	}
	b.held = false
	b.out.Store(true)
	return true
}
