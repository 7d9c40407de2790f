package diskengine

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
)

// task is what wakes a loop of the background.
type task struct {
	told  chan struct{} // there may be something to do
	eased chan struct{} // what failed may succeed now
}

func newTask() task { return task{make(chan struct{}, 1), make(chan struct{}, 1)} }

// longLock is a lock that is held for long. In a bubble of package synctest time goes on while a goroutine
// waits for it.
type longLock chan struct{}

func newLongLock() longLock { return make(longLock, 1) }

// Lock implements sync.Locker.
func (b longLock) Lock() { b <- struct{}{} }

// Unlock implements sync.Locker.
func (b longLock) Unlock() { <-b }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	lookEvery  = time.Second            // what has grown, and queues that are empty, are looked for
	againAfter = 250 * time.Millisecond // what failed is tried again, first
	againMost  = 10 * time.Second       // and each time after twice as long, up to this
	tellEvery  = 10 * time.Second       // the operator hears of what goes on failing
)

// ends reports whether nothing more is to be done, after something was: the engine closes, or has to
// stop.
func (k *compactor) ends(err error) bool {
	switch {
	case k.e.life.Err() != nil:
		return true
	case errors.Is(err, manifest.ErrFailed):
		k.e.stop(err)()
		return true
	}
	return false
}

// loop does some work whenever it is woken, and now and then, until the engine closes or stops.
func (k *compactor) loop(c task, work func() error) {
	wait := time.NewTimer(lookEvery)
	defer wait.Stop()
	told, pause := c.told, time.Duration(0)
	var last time.Time // the operator heard of it
	for {
		select {
		case <-told:
		case <-c.eased:
		case <-wait.C:
		case <-k.e.life.Done():
			return
		case <-k.e.log.Failed():
			return
		}
		err := work()
		switch {
		case k.ends(err):
			return
		case err == nil:
			told, pause = c.told, 0
			wait.Reset(lookEvery)
			continue
		}
		k.counts.failures.Add(1)
		if now := time.Now(); last.IsZero() || now.Sub(last) >= tellEvery {
			last = now
			k.e.slog.Warn("tarry disk: what is done in the background failed and is tried again", "dir", k.e.dir, "error", err)
		}
		told, pause = nil, longer(pause)
		wait.Reset(pause)
	}
}

// longer is after what time something is tried again that failed, and did so after a pause before.
func longer(pause time.Duration) time.Duration { return min(max(againAfter, 2*pause), againMost) }
