package wal

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

// Config configures a log. Nil means all defaults.
type Config struct {
	// ID identifies the store. It is part of every checksum, so that a segment of another
	// store is never read as one of this store.
	ID uint64

	// Begun says that a segment of the log was begun before, durably: if none is left, the log
	// is damaged, not new.
	Begun bool

	// SegmentBytes is the size of a segment, rounded up to blocks of 4 KiB. It may differ from
	// opening to opening. 0: 32 MiB; at least 64 KiB.
	SegmentBytes int64

	// Spares is how many segments are made ahead. Their space is reserved, if the file system
	// can. So this much can still be appended when the disk is full and Admit refuses. 0: 2;
	// at least 1.
	Spares int

	// Keep is the most segments that wait to be used again; others that are released are
	// removed. 0: 4; at least Spares.
	Keep int

	// MaxEntry is the most bytes of an entry. 0: 256 MiB; at most 1 GiB.
	MaxEntry int

	// MaxPending is how many bytes may wait for the disk before Admit waits. 0: 16 MiB.
	MaxPending int

	// RetryFor is how long the log waits before it stops: for a next segment that cannot be
	// made, for want of space or of file descriptors, or for space in a segment if none could
	// be reserved. 0: a minute; negative: not at all.
	RetryFor time.Duration

	// Short reports whether space is short. Then a segment is made only if none is ahead, and
	// no more than Spares are kept, so that the space is free for others. nil: it never is.
	Short func() bool

	// Relieve is called while the log cannot go on for want of space. It reports whether it
	// made some: then the log tries again at once. nil: nothing can make any.
	Relieve func() bool

	// Synced is told how long each sync took that a caller may wait for. The writer calls it.
	// nil: nothing is told.
	Synced func(time.Duration)

	// Logger is told what an operator should know. nil: slog.Default.
	Logger *slog.Logger

	// Still says that nothing happens by itself: a caller that waits for the log writes it,
	// and makes the next segments. So a test can play the same again. Then one goroutine at a
	// time may use the log, and RetryFor must be negative.
	Still bool

	// Salt returns a random number for each segment that is begun. nil: math/rand/v2 does.
	Salt func() uint64
}

const (
	minSegment = 64 << 10
	mostEntry  = 1 << 30

	markAfter  = time.Second            // without appends until an empty frame is written
	retryEvery = 100 * time.Millisecond // until failed work is tried again
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
