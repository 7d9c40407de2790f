// Package fresh keeps what is made of files in step with them: certificates, tokens.
package fresh

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Interval is how often the files are looked at, at most.
const Interval = time.Second

// Value is what is made of files. Who asks for it has the files looked at, at most once
// in an Interval, and it is made anew when one of them is another: no goroutine watches,
// and files that are replaced or mounted anew are met like those that are written. It
// may be used by many goroutines.
//
// That a file is another its size, mode, owner and times tell. Times are coarse: what is
// written twice within one tick has the times of the first. So of files that had changed
// just before they were looked at the content is looked at once more.
type Value[T any] struct {
	paths  []string
	make   func() (T, error)
	failed func(error)
	grace  time.Duration // of files that are gone
	gone   func() T      // nil: the value stays

	now     atomic.Pointer[T]
	trouble atomic.Pointer[error] // why there is nothing newer; nil: there is not
	looked  atomic.Int64          // when, in nanoseconds on the clock of began
	began   time.Time
	mu      sync.Mutex
	seen    []look        // the files that now is made of
	missing time.Duration // since when one is gone, on the clock of began; 0: none is
	dropped bool          // now is what gone returned
}

// look is a file as it was looked at.
type look struct {
	os.FileInfo
	settled bool   // its times tell all that may happen to it from now on
	sum     []byte // of its content, while they do not; else nil
}

// New makes a value of files. failed is told why it could not be made anew, once for
// each reason; the value then stays as it was, and making it is tried again.
func New[T any](make func() (T, error), failed func(error), paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, make: make, failed: failed, began: time.Now()}
	seen, err := v.look()
	if err != nil {
		return nil, err
	}
	now, err := make()
	if err != nil {
		return nil, err
	}
	v.keep(seen)
	v.now.Store(&now)
	return v, nil
}

// OnGone has the value become what gone returns once one of the files has been missed for
// so long; one that comes back within that was being replaced. It is to be called before
// all but New. While nobody asks for the value nothing is missed.
func (v *Value[T]) OnGone(grace time.Duration, gone func() T) { v.grace, v.gone = grace, gone }

// Get returns the value, made anew if the files have changed. While one caller makes it
// the others get what there was.
func (v *Value[T]) Get() T {
	if at := v.looked.Load(); int64(time.Since(v.began))-at >= int64(Interval) && v.mu.TryLock() {
		v.refresh()
		v.mu.Unlock()
	}
	return *v.now.Load()
}

// Refresh looks at the files at once.
func (v *Value[T]) Refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refresh()
}

// Trouble returns why the value is not made of the files as they are, as far as they were
// looked at; nil: it is.
func (v *Value[T]) Trouble() error {
	if err := v.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// refresh is called with v.mu held.
func (v *Value[T]) refresh() {
	v.looked.Store(int64(time.Since(v.began)))
	seen, err := v.look() // before they are read: what is written meanwhile is seen next time
	if err == nil && v.Trouble() == nil && slices.EqualFunc(seen, v.seen, same) {
		v.keep(seen)
		return
	}
	var now T
	if err == nil {
		now, err = v.make()
	}
	v.miss(errors.Is(err, fs.ErrNotExist))
	if err != nil {
		if last := v.Trouble(); last == nil || last.Error() != err.Error() {
			v.trouble.Store(&err)
			v.failed(err)
		}
		return
	}
	v.keep(seen)
	v.dropped = false
	v.trouble.Store(nil)
	v.now.Store(&now)
}

// miss notes whether a file is gone, and drops the value when that has lasted.
func (v *Value[T]) miss(gone bool) {
	at := max(1, time.Since(v.began))
	switch {
	case !gone:
		v.missing = 0
	case v.missing == 0:
		v.missing = at
	case at-v.missing >= v.grace && v.gone != nil && !v.dropped:
		now := v.gone()
		v.now.Store(&now)
		v.dropped = true
	}
}

// coarse is how far the times of a file may be from those of its changes: most file
// systems tell them to some milliseconds, some to two seconds.
const coarse = 2 * time.Second

func (v *Value[T]) look() ([]look, error) {
	all := make([]look, len(v.paths))
	for i, path := range v.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		all[i].FileInfo = info
		at, told := changedAt(info)
		all[i].settled = told && time.Since(at) > coarse
		// Of one that has settled since it was looked at too: it may have changed meanwhile.
		if !all[i].settled || len(v.seen) > 0 && v.seen[i].sum != nil {
			all[i].sum = sum(path, info)
		}
	}
	return all, nil
}

// keep keeps what was seen, without the sums that are of no more use.
func (v *Value[T]) keep(seen []look) {
	for i := range seen {
		if seen[i].settled {
			seen[i].sum = nil
		}
	}
	v.seen = seen
}

// sum is the SHA-256 of a file, of one that cannot be read that of nothing.
func sum(path string, info os.FileInfo) []byte {
	h := sha256.New()
	if !info.Mode().IsRegular() {
		return h.Sum(nil) // it may have no end
	}
	if f, err := os.Open(path); err == nil {
		_, _ = io.Copy(h, f)
		_ = f.Close()
	}
	return h.Sum(nil)
}

func same(a, b look) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) &&
		sameStatus(a, b) && (a.sum == nil || b.sum == nil || bytes.Equal(a.sum, b.sum))
}
