package diskengine

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config sets up an Engine. A nil Config and the zero of each field mean the
// defaults stated.
type Config struct {
	// FS is where the directory lies; nil: the operating system's file system.
	FS vfs.FS

	// Now is the engine's clock; nil: time.Now. It may step either way.
	Now func() time.Time

	// MaxPending is how many live messages the engine keeps at most; a push beyond
	// fails with engine.ErrLimit. 0: no limit.
	MaxPending int64

	// MinFreeBytes is the free space below which pushes fail with
	// engine.ErrNoSpace, while lease, settle and cancel go on. 0: 256 MiB;
	// negative: pushes go on until the disk is full.
	MinFreeBytes int64

	// BallastBytes is the size of a file kept in the directory only to be removed when
	// the disk is full: from then on pushes fail with engine.ErrNoSpace until there is
	// room for it again, while leases, settlements, cancels, purges and redrives have
	// that much space. It is reserved without being written, which Linux can do;
	// elsewhere there is none. 0: 64 MiB; negative: none.
	BallastBytes int64

	// CacheBytes is about the size of the cache of blocks read from disk: it grows and
	// shrinks by 2 × MemTableBytes as fewer or more tables of recent writes exist.
	// 0: 64 MiB.
	CacheBytes int64

	// MemTableBytes is the size of one table of recent writes in memory; at most
	// four exist at once. 0: 16 MiB.
	MemTableBytes uint64

	// RetryFor is for how long a write is tried again that fails for want of space or
	// of file descriptors, and a table that cannot be written at all, before the
	// engine stops: every call then fails with engine.ErrUnavailable until the
	// directory is opened again. 0: a minute; negative: not at all.
	RetryFor time.Duration

	// CloseTimeout is how long Close waits for a disk that does not answer. 0: 20 s.
	CloseTimeout time.Duration

	// Logger gets what an operator should know; nil: slog.Default.
	Logger *slog.Logger
}

const (
	defaultMinFree  = 256 << 20
	defaultBallast  = 64 << 20
	defaultCache    = 64 << 20
	defaultMemTable = 16 << 20
	defaultRetryFor = time.Minute
	defaultClose    = 20 * time.Second
)

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	if d.FS == nil {
		d.FS = vfs.Default
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.MinFreeBytes == 0 {
		d.MinFreeBytes = defaultMinFree
	}
	if d.BallastBytes == 0 {
		d.BallastBytes = defaultBallast
	}
	if d.CacheBytes <= 0 {
		d.CacheBytes = defaultCache
	}
	if d.MemTableBytes == 0 {
		d.MemTableBytes = defaultMemTable
	}
	if d.RetryFor == 0 {
		d.RetryFor = defaultRetryFor
	}
	if d.CloseTimeout <= 0 {
		d.CloseTimeout = defaultClose
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	return d
}
