package store

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
)

// Task wakes a loop of the background.
type Task struct {
	Told  chan struct{} // there may be something to do
	Eased chan struct{} // what failed may succeed now
}

func newTask() Task { return Task{make(chan struct{}, 1), make(chan struct{}, 1)} }

// longLock is a mutex that may be held for long. In a bubble of package synctest time goes on
// while a goroutine waits for it; for a sync.Mutex it would not.
type longLock chan struct{}

func newLongLock() longLock { return make(longLock, 1) }

// Lock implements sync.Locker.
func (b longLock) Lock() { b <- struct{}{} }

// Unlock implements sync.Locker.
func (b longLock) Unlock() { <-b }

// Signal wakes whatever waits on a channel with room for one signal.
func Signal(c chan struct{}) {
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

// Ends reports whether a loop is to end after some work: the engine closes, or had to stop at
// err.
func (k *Compactor) Ends(err error) bool {
	switch {
	case k.st.Life.Err() != nil:
		return true
	case errors.Is(err, manifest.ErrFailed):
		k.st.Stop(err)()
		return true
	}
	return false
}

// loop does work whenever it is woken, and every lookEvery, until the engine closes or stops.
func (k *Compactor) loop(c Task, work func() error) {
	wait := time.NewTimer(lookEvery)
	defer wait.Stop()
	told, pause := c.Told, time.Duration(0)
	var last time.Time // when the operator was last told
	for {
		select {
		case <-told:
		case <-c.Eased:
		case <-wait.C:
		case <-k.st.Life.Done():
			return
		case <-k.st.Log.Failed():
			return
		}
		err := work()
		switch {
		case k.Ends(err):
			return
		case err == nil:
			told, pause = c.Told, 0
			wait.Reset(lookEvery)
			continue
		}
		k.Counts.Failures.Add(1)
		if now := time.Now(); last.IsZero() || now.Sub(last) >= tellEvery {
			last = now
			k.st.Slog.Warn("tarry disk: background work failed and is tried again", "dir", k.st.Dir, "error", err)
		}
		told, pause = nil, Longer(pause)
		wait.Reset(pause)
	}
}

// Longer returns the pause before failed work is tried again, from the pause before that; 0:
// it has failed for the first time.
func Longer(pause time.Duration) time.Duration { return min(max(againAfter, 2*pause), againMost) }
