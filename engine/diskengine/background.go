package diskengine

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
)

// task wakes a loop of the background.
type task struct {
	told  chan struct{} // there may be something to do
	eased chan struct{} // what failed may succeed now
}

func newTask() task { return task{make(chan struct{}, 1), make(chan struct{}, 1)} }

// longLock is a mutex that may be held for long. In a bubble of package synctest time goes on
// while a goroutine waits for it; for a sync.Mutex it would not.
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
	lookEvery  = time.Second            // between looks for a grown memtable and for empty queues
	againAfter = 250 * time.Millisecond // before failed work is tried again; doubled each time
	againMost  = 10 * time.Second       // the longest such pause
	tellEvery  = 10 * time.Second       // between warnings about work that goes on failing
)

// ends reports whether a loop is to end after some work: the engine closes, or had to stop at
// err.
func (k *compactor) ends(err error) bool {
	switch {
	case k.st.life.Err() != nil:
		return true
	case errors.Is(err, manifest.ErrFailed):
		k.st.stop(err)()
		return true
	}
	return false
}

// loop does work whenever it is woken, and every lookEvery, until the engine closes or stops.
func (k *compactor) loop(c task, work func() error) {
	wait := time.NewTimer(lookEvery)
	defer wait.Stop()
	told, pause := c.told, time.Duration(0)
	var last time.Time // when the operator was last told
	for {
		select {
		case <-told:
		case <-c.eased:
		case <-wait.C:
		case <-k.st.life.Done():
			return
		case <-k.st.log.Failed():
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
			k.st.slog.Warn("tarry disk: background work failed and is tried again", "dir", k.st.dir, "error", err)
		}
		told, pause = nil, longer(pause)
		wait.Reset(pause)
	}
}

// longer returns the pause before failed work is tried again, from the pause before that; 0:
// it has failed for the first time.
func longer(pause time.Duration) time.Duration { return min(max(againAfter, 2*pause), againMost) }
