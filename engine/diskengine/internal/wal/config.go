package wal

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// Config is how a log is kept. Nil works.
type Config struct {
	// ID is what the store is called; it is part of every checksum, so that a segment of
	// another store is never read as one of this.
	ID uint64

	// Begun says that a segment of the log was begun before, durably: where none is left the log is
	// damaged, not new.
	Begun bool

	// SegmentBytes is how large segments are made, in whole blocks of 4 KiB. It may
	// change from opening to opening. 0: 32 MiB; at least 64 KiB.
	SegmentBytes int64

	// Spares is how many segments are made ahead. Their space is taken, where the file
	// system can: when the disk is full and Admit refuses, this much can still be
	// appended. 0: 2; at least 1.
	Spares int

	// Keep is how many segments wait to be used again at most; those that are released
	// beyond are removed. 0: 4; at least Spares.
	Keep int

	// MaxEntry is how long an entry may be, in bytes. 0: 256 MiB; at most 1 GiB.
	MaxEntry int

	// MaxPending is how many bytes may wait for the disk before Admit waits. 0: 16 MiB.
	MaxPending int

	// RetryFor is how long the log waits for a next segment that cannot be made, for want of
	// space or of file descriptors, or for space in one where it cannot be taken ahead, before
	// it stops. 0: a minute; negative: not at all.
	RetryFor time.Duration

	// Short reports whether space is short: then a segment is made only where none is ahead, and
	// no more than Spares are kept, so that others have it. nil: it never is.
	Short func() bool

	// Relieve is called while the log cannot go on for want of space, and reports whether it
	// made some: then it is tried again at once. nil: nothing can.
	Relieve func() bool

	// Synced gets how long each sync took that a caller may wait for, by the goroutine that
	// writes. nil: it is not called.
	Synced func(time.Duration)

	// Logger gets what an operator should know. nil: slog.Default.
	Logger *slog.Logger

	// Still says that nothing is done by itself: a caller that waits for the log writes it, and makes the
	// segments that come next, so that a test can play the same again. One goroutine may use the log
	// at a time, and RetryFor is negative.
	Still bool

	// Salt returns a random number for each segment that is begun. nil: math/rand/v2 does.
	Salt func() uint64
}

const (
	minSegment = 64 << 10
	mostEntry  = 1 << 30

	markAfter  = time.Second            // without appends an empty frame says what is synced
	retryEvery = 100 * time.Millisecond // the preparer tries again what failed
)

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	if d.SegmentBytes == 0 {
		d.SegmentBytes = 32 << 20
	}
	d.SegmentBytes = max(minSegment, (d.SegmentBytes+headerSize-1)/headerSize*headerSize)
	if d.Spares == 0 {
		d.Spares = 2
	}
	d.Spares = max(1, d.Spares)
	if d.Keep == 0 {
		d.Keep = 4
	}
	d.Keep = max(d.Spares, d.Keep)
	if d.MaxEntry <= 0 {
		d.MaxEntry = 256 << 20
	}
	d.MaxEntry = min(d.MaxEntry, mostEntry)
	if d.MaxPending <= 0 {
		d.MaxPending = 16 << 20
	}
	if d.RetryFor == 0 {
		d.RetryFor = time.Minute
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.Short == nil {
		d.Short = func() bool { return false }
	}
	if d.Relieve == nil {
		d.Relieve = func() bool { return false }
	}
	if d.Synced == nil {
		d.Synced = func(time.Duration) {}
	}
	if d.Salt == nil {
		d.Salt = rand.Uint64
	}
	return d
}
