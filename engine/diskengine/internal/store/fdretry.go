package store

import (
	"errors"
	"log/slog"
	"syscall"
	"time"
)

// fdRetry repeats calls that found no free file descriptor, as while many connections are
// open. Such a call has done nothing, but if it passed for a failed sync the store would stop.
type fdRetry struct {
	most time.Duration // how long each call is repeated; 0 or less: not at all
	slog *slog.Logger
}

const (
	firstRetry   = time.Millisecond // the first wait; each next one is twice as long
	longestRetry = 100 * time.Millisecond
)

// with makes a call, and repeats it while there is no file descriptor for it.
func (p *fdRetry) with(call func() error) error {
	err := call()
	for begun, wait := time.Now(), firstRetry; isScarce(err) && time.Since(begun) < p.most; wait = min(2*wait, longestRetry) {
		time.Sleep(wait)
		if err = call(); isScarce(err) && wait < longestRetry && 2*wait >= longestRetry {
			p.slog.Warn("tarry disk: no file descriptor is left: calls that need one are tried again", "error", err)
		}
	}
	return err
}

// isScarce reports whether an error says that the process, or the machine, may open no more files.
func isScarce(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
