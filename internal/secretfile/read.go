// Package secretfile reads files that hold secrets or permissions, such as keys, certificates
// and tokens. Other users must not be able to read or write those with secrets (Read). What is
// made from files follows their changes (Value).
package secretfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// MaxSize is the largest size of such a file in bytes.
const MaxSize = 16 << 20

// Read returns the content of a file, unless other users may read or write it.
//
// Only the owner may have access. As an exception, a group may read a file that root owns:
// systemd (with an ACL) and Kubernetes pass secrets to a service in this way, and an
// administrator may do so too. Only the modes of regular files are checked, not those of
// pipes.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of the open file, not of the path, which may change
	if err != nil {
		return nil, err
	}
	if err := Check(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err == nil && len(data) > MaxSize {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("it is larger than 16 MiB")}
	}
	return data, err
}

// Check returns an error if other users may read or write a file. It says what to do.
func Check(path string, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	mode, allowed := info.Mode().Perm(), fs.FileMode(0o700)
	if ownedByRoot(info) {
		allowed |= 0o040
	}
	if !hasModes || mode&^allowed == 0 {
		return nil
	}
	return fmt.Errorf("others may read or write %s, its mode is %04o (chmod 600 %[1]s)", path, mode)
}

// Replace replaces a file by what write writes, so that a reader never sees half of it. The
// new one has the owner and mode of the old. A file that is missing is made. Of two calls at
// a time one fails.
func Replace(file string, write func(next *os.File) error) error {
	path, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		path, err = file, nil
	}
	if err != nil {
		return err
	}
	next, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s.new is there: somebody is changing %[1]s (if nobody is, remove it)", path)
	}
	if err != nil {
		return err
	}
	if err := fill(next, path, write); err != nil {
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	if err := errors.Join(next.Close(), os.Rename(next.Name(), path)); err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// fill makes next what takes the place of the file.
func fill(next *os.File, path string, write func(next *os.File) error) error {
	if info, err := os.Stat(path); err == nil {
		if err := keepOwner(next, info); err != nil {
			return fmt.Errorf("%s would get another owner (change it as its owner, or as root): %w", path, err)
		}
	}
	if err := write(next); err != nil {
		return err
	}
	return next.Sync()
}

// CheckInterval is the shortest time between two checks of the files.
const CheckInterval = time.Second

// Value is a value made from files. Get checks the files, at most once in a
// CheckInterval, and makes the value again when one has changed: its content, mode or owner.
// A check reads the files, since times are coarse and can be set. Nothing watches them, so
// replaced and remounted files are found as well as rewritten ones. It is safe for concurrent
// use.
type Value[T any] struct {
	paths  []string
	make   func() (T, error)
	onFail func(error)
	grace  time.Duration // for files that are gone
	onGone func() T      // nil: the value stays

	value        atomic.Pointer[T]
	trouble      atomic.Pointer[error] // why the value is out of date; nil: it is not
	lastCheck    atomic.Int64          // time of the last check, in nanoseconds since began
	began        time.Time
	mu           sync.Mutex
	madeFrom     []byte        // the state of the files that value was made from
	missingSince time.Duration // when a file was first found gone, since began; 0: none is
	dropped      bool          // value came from onGone
}

// NewValue makes a value from files. If it later cannot be made again, the old value stays,
// each check tries again, and failed is called whenever the reason changes.
func NewValue[T any](make func() (T, error), failed func(error), paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, make: make, onFail: failed, began: time.Now()}
	seen, err := v.state()
	if err != nil {
		return nil, err
	}
	value, err := make()
	if err != nil {
		return nil, err
	}
	v.madeFrom = seen
	v.value.Store(&value)
	return v, nil
}

// OnGone replaces the value with the result of gone once a file has been missing for grace.
// A file that comes back sooner was just being replaced. Call OnGone before any other method.
// Only Get and Refresh notice that a file is missing.
func (v *Value[T]) OnGone(grace time.Duration, gone func() T) { v.grace, v.onGone = grace, gone }

// Get returns the value, made again if the files have changed. While one caller makes it,
// the others get the old one.
func (v *Value[T]) Get() T {
	if at := v.lastCheck.Load(); int64(time.Since(v.began))-at >= int64(CheckInterval) && v.mu.TryLock() {
		v.refresh()
		v.mu.Unlock()
	}
	return *v.value.Load()
}

// Refresh checks the files at once.
func (v *Value[T]) Refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refresh()
}

// Trouble returns why the value is out of date, as of the last check; nil: it is not.
func (v *Value[T]) Trouble() error {
	if err := v.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// refresh checks the files, and makes the value again if they have changed. Called with v.mu
// held.
func (v *Value[T]) refresh() {
	v.lastCheck.Store(int64(time.Since(v.began)))
	seen, err := v.state() // before making, so that a write meanwhile is found next time
	if err == nil && v.Trouble() == nil && bytes.Equal(seen, v.madeFrom) {
		return
	}
	var value T
	if err == nil {
		value, err = v.make()
	}
	v.noteMissing(errors.Is(err, fs.ErrNotExist))
	if err != nil {
		if last := v.Trouble(); last == nil || last.Error() != err.Error() {
			v.trouble.Store(&err)
			v.onFail(err)
		}
		return
	}
	v.madeFrom = seen
	v.dropped = false
	v.trouble.Store(nil)
	v.value.Store(&value)
}

// noteMissing records whether a file is missing. After grace it replaces the value with that
// of onGone.
func (v *Value[T]) noteMissing(gone bool) {
	at := max(1, time.Since(v.began))
	switch {
	case !gone:
		v.missingSince = 0
	case v.missingSince == 0:
		v.missingSince = at
	case at-v.missingSince >= v.grace && v.onGone != nil && !v.dropped:
		value := v.onGone()
		v.value.Store(&value)
		v.dropped = true
	}
}

// state identifies what a value is made from: the content, mode and owner of each file.
func (v *Value[T]) state() ([]byte, error) {
	h := sha256.New()
	for _, path := range v.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(h, info.Size(), info.Mode(), ownedByRoot(info))
		if !info.Mode().IsRegular() {
			continue // it may be endless
		}
		f, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(h, err)
			continue // making the value reports it
		}
		_, _ = io.CopyN(h, f, MaxSize+1)
		_ = f.Close()
	}
	return h.Sum(nil), nil
}
