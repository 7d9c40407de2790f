package diskengine

import (
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// flushes watches Pebble write its tables of recent writes to disk. It tries for
// ever, and when memory is full it blocks whoever writes: so flushes that go on
// failing end the store. A compaction that fails does not: it only leaves more to
// read.
type flushes struct {
	store    *store
	retryFor time.Duration

	mu    sync.Mutex
	last  error     // how the last one ended
	since time.Time // they have failed since then; zero: they have not
	told  time.Time // when the operator last heard of background work that fails
}

// tellEvery is how often the operator hears of work that goes on failing.
const tellEvery = 10 * time.Second

// end notes how a flush ended. One that wrote nothing, because all it had was
// deleted again, has an error too, which failed never gets to see.
func (f *flushes) end(info pebble.FlushInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = info.Err
	if info.Err == nil {
		f.since = time.Time{}
		f.store.disk.wrote(nil)
	}
}

// failed takes an error of Pebble's background work, which holds Pebble's lock.
func (f *flushes) failed(err error) {
	now := time.Now()
	f.mu.Lock()
	flush := f.last != nil && errors.Is(err, f.last)
	if flush && f.since.IsZero() {
		f.since = now
	}
	lasts := flush && now.Sub(f.since) >= f.retryFor
	tell := f.told.IsZero() || now.Sub(f.told) >= tellEvery
	if tell {
		f.told = now
	}
	f.mu.Unlock()
	f.store.disk.wrote(err)
	f.store.disk.measured.failures.Add(1)
	switch {
	case f.store.failed() != nil:
	case lasts:
		_ = f.store.fail(err)
	case tell:
		f.store.log.Error("tarry disk: background work failed, it is tried again", "error", err)
	}
}
