// Package fresh keeps what is made of files in step with them: certificates, tokens.
package fresh

import (
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
type Value[T any] struct {
	paths  []string
	make   func() (T, error)
	failed func(error)

	now     atomic.Pointer[T]
	looked  atomic.Int64 // when, in nanoseconds on the clock of began
	began   time.Time
	mu      sync.Mutex
	seen    []os.FileInfo // of the files that now is made of
	trouble string        // why there is nothing newer; "": there is not
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
	v.seen = seen
	v.now.Store(&now)
	return v, nil
}

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

// refresh is called with v.mu held.
func (v *Value[T]) refresh() {
	v.looked.Store(int64(time.Since(v.began)))
	seen, err := v.look() // before they are read: what is written meanwhile is seen next time
	if err == nil && v.trouble == "" && slices.EqualFunc(seen, v.seen, same) {
		return
	}
	var now T
	if err == nil {
		now, err = v.make()
	}
	if err != nil {
		if v.trouble != err.Error() {
			v.trouble = err.Error()
			v.failed(err)
		}
		return
	}
	v.seen, v.trouble = seen, ""
	v.now.Store(&now)
}

func (v *Value[T]) look() ([]os.FileInfo, error) {
	all := make([]os.FileInfo, len(v.paths))
	for i, path := range v.paths {
		var err error
		if all[i], err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime())
}
