package disktest

import (
	"errors"
	"io/fs"
)

// The calls of vfs.FS and vfs.File.
const (
	Create  = "create"
	Open    = "open"
	Rename  = "rename"
	Link    = "link"
	Remove  = "remove"
	List    = "list"
	Mkdir   = "mkdir"
	SyncDir = "syncdir"
	Free    = "free"
	Lock    = "lock"

	Read        = "read"
	Write       = "write"
	Sync        = "sync"
	Preallocate = "preallocate"
	Size        = "size"
	Close       = "close"
)

// Call is a call that is about to be made.
type Call struct {
	N    int64  // its number, from 1 for each Disk
	Op   string // one of the constants
	Name string // the file or directory; for a rename or link, the new name
	Off  int64
	Len  int
	Data []byte // the bytes to be written; valid until the hook returns
}

// Changes reports whether the call may change what is on the disk.
func (c Call) Changes() bool {
	switch c.Op {
	case Open, List, Free, Lock, Read, Size, Close:
		return false
	}
	return true
}

// Short is an error of a write that has written only its first bytes.
type Short struct {
	Bytes int
	Err   error
}

// Error implements error.
func (s *Short) Error() string { return s.Err.Error() }

// Unwrap returns the cause.
func (s *Short) Unwrap() error { return s.Err }

// Late is an error of a call that is carried out all the same, as if its answer were lost on
// the way.
type Late struct{ Err error }

// Error implements error.
func (l *Late) Error() string { return l.Err.Error() }

// Unwrap returns the cause.
func (l *Late) Unwrap() error { return l.Err }

// late reports whether a call is carried out though it fails.
func late(err error) bool {
	var l *Late
	return errors.As(err, &l)
}

// ErrOff is the error of every call after Halt.
var ErrOff = errors.New("the simulated disk is off")

// Hook sets the function that is called before each call, by the goroutine that makes it and
// without any lock. It replaces the one before; nil: none.
func (d *Disk) Hook(fn func(Call) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = fn
}

// Calls is how many calls were made.
func (d *Disk) Calls() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Halt makes every further call fail with ErrOff, so that users of the disk come to an end.
// Crash and Kill still work.
func (d *Disk) Halt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off = true
}

// begin counts a call and asks the hook.
func (d *Disk) begin(op, name string, off int64, n int) error {
	return d.ask(Call{Op: op, Name: name, Off: off, Len: n})
}

func (d *Disk) ask(c Call) error {
	d.mu.Lock()
	d.calls++
	c.N = d.calls
	hook, isOff := d.hook, d.off
	d.mu.Unlock()
	if isOff {
		return fail(c.Op, c.Name, ErrOff)
	}
	if hook == nil {
		return nil
	}
	return fail(c.Op, c.Name, hook(c))
}

func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
