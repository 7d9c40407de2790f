package diskengine

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system as Pebble sees it. Pebble cannot live with a log or a
// manifest that fails: it panics with its own locks held, or carries on as if
// nothing had happened. So an operation on one of those that fails ends the store,
// and from then on the disk is frozen: nothing on it changes any more, as if the
// power had been lost at that instant, while Pebble is told that all goes well. It
// then neither hangs nor retries, and Close gets through. Nobody is answered from
// that: the store's failure is set before the first pretence, and who waited for a
// sync looks at it afterwards.
//
// What fails for want of space or of file descriptors is tried again for a while,
// since others may give some back. Tables are another matter: Pebble writes those
// anew by itself, so their errors are passed on, only not at once.
type disk struct {
	vfs.FS
	retryFor time.Duration
	ballast  *ballast
	fail     func(error)   // ends the store and freezes the disk
	armed    atomic.Bool   // the store is open; until then Pebble copes with every error
	awaited  atomic.Int64  // batches whose sync somebody waits for
	frozen   chan struct{} // closed: nothing changes any more
	freezing sync.Once
	measured measured

	mu      sync.Mutex
	ops     map[*operation]struct{} // under way
	refused int                     // tables that could not be written, in a row
}

// operation is one that changes the disk.
type operation struct {
	what, name string
	since      time.Time
}

func newDisk(fs vfs.FS, retryFor time.Duration, b *ballast) *disk {
	return &disk{FS: fs, retryFor: retryFor, ballast: b, frozen: make(chan struct{}), ops: make(map[*operation]struct{})}
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

func (d *disk) freeze() { d.freezing.Do(func() { close(d.frozen) }) }

func (d *disk) isFrozen() bool {
	select {
	case <-d.frozen:
		return true
	default:
		return false
	}
}

// errFrozen says that an operation was not carried out and has to look as if.
var errFrozen = errors.New("the disk is frozen")

const (
	retryEvery = 50 * time.Millisecond

	// tablePause is how long the next table waits after one that failed, for the
	// first in a row; each further one doubles it, up to tablePauseMost.
	tablePause     = time.Millisecond
	tablePauseMost = time.Second
)

// isTable reports whether Pebble can write a file anew when it fails.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// change carries out an operation that changes the disk. Its error is errFrozen,
// or one that Pebble can live with.
func (d *disk) change(what, name string, retry bool, fn func() error) error {
	if d.isFrozen() {
		return errFrozen
	}
	op := &operation{what, name, time.Now()}
	d.mu.Lock()
	d.ops[op] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.ops, op)
		d.mu.Unlock()
	}()
	err := fn()
	if retry && vfs.IsNoSpaceError(err) && d.ballast.drop() {
		err = fn()
	}
	if err == nil || !d.armed.Load() || isTable(name) {
		return err
	}
	for retry && passes(err) && time.Since(op.since) < d.retryFor {
		select {
		case <-time.After(retryEvery):
		case <-d.frozen:
			return errFrozen
		}
		d.measured.again.Add(1)
		if err = fn(); err == nil {
			return nil
		}
	}
	d.fail(err)
	return errFrozen
}

// passes reports whether an error may go away by itself. One of a sync does not,
// however it is called: what it did not write is forgotten.
func passes(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return vfs.IsNoSpaceError(err)
}

// wrote counts the tables that fail, for the pause before the next.
func (d *disk) wrote(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.refused = 0
	} else {
		d.refused++
	}
}

// pause waits before a table is tried again.
func (d *disk) pause() {
	d.mu.Lock()
	n := d.refused
	d.mu.Unlock()
	if n == 0 {
		return
	}
	select {
	case <-time.After(min(tablePauseMost, tablePause<<min(n, 20))):
	case <-d.frozen:
	}
}

// slowest returns the operation that has been under way for longest.
func (d *disk) slowest() (op operation, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for o := range d.ops {
		if !ok || o.since.Before(op.since) {
			op, ok = *o, true
		}
	}
	return op, ok
}

func (d *disk) open(what, name string, open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := d.change(what, name, true, func() (err error) { f, err = open(); return err })
	if err == errFrozen {
		return &diskFile{File: ghost{d.PathBase(name)}, disk: d, name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	file := diskFile{File: f, disk: d, name: name}
	if isLog(name) {
		return newLogFile(file), nil
	}
	return &file, nil
}

// Create implements vfs.FS.
func (d *disk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if isTable(name) {
		d.pause()
	}
	return d.open("create", name, func() (vfs.File, error) { return d.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (d *disk) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return d.open("open", name, func() (vfs.File, error) { return d.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return d.open("reuse", name, func() (vfs.File, error) { return d.FS.ReuseForWrite(old, name, c) })
}

// Open implements vfs.FS.
func (d *disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, opts...)
	if err != nil && d.isFrozen() {
		time.Sleep(retryEvery) // a table that was only pretended: Pebble would ask again at once
	}
	return f, err
}

// OpenDir implements vfs.FS.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: f, disk: d, name: name}, nil
}

func (d *disk) unlessFrozen(what, name string, retry bool, fn func() error) error {
	if err := d.change(what, name, retry, fn); err != errFrozen {
		return err
	}
	return nil
}

// Link implements vfs.FS.
func (d *disk) Link(old, name string) error {
	return d.unlessFrozen("link", name, true, func() error { return d.FS.Link(old, name) })
}

// Rename implements vfs.FS.
func (d *disk) Rename(old, name string) error {
	return d.unlessFrozen("rename", name, true, func() error { return d.FS.Rename(old, name) })
}

// MkdirAll implements vfs.FS.
func (d *disk) MkdirAll(name string, perm os.FileMode) error {
	return d.unlessFrozen("make", name, true, func() error { return d.FS.MkdirAll(name, perm) })
}

// Remove implements vfs.FS. What cannot be removed only takes up space.
func (d *disk) Remove(name string) error {
	if d.isFrozen() {
		return nil
	}
	return d.FS.Remove(name)
}

// RemoveAll implements vfs.FS.
func (d *disk) RemoveAll(name string) error {
	if d.isFrozen() {
		return nil
	}
	return d.FS.RemoveAll(name)
}
