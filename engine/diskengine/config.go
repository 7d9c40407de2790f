package diskengine

import (
	"cmp"
	"log/slog"
	"runtime"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Config sets up an Engine. A nil Config and the zero of each field mean the defaults stated.
type Config struct {
	// Now is the engine's clock; nil: time.Now. It may step either way.
	Now func() time.Time

	// MaxPending is the most live messages that the engine keeps; a push beyond it fails with
	// engine.ErrLimit. 0: no limit.
	MaxPending int64

	// History is the default for queues without settings of their own. While space is short, so
	// that pushes are refused, finished messages are not listed.
	History engine.History

	// MemoryBytes is about how much memory messages take that are in no sstable yet. A quarter
	// of it is for messages about to be leased, over all queues. Beside it an sstable takes
	// about 2.7 bytes for each of its messages. 0: 256 MiB; at least 8 MiB.
	MemoryBytes int64

	// MaxLeases is the most leases over all queues. A lapsed lease counts until its message is
	// settled or leased again. A Lease beyond it grants fewer than it was asked for, a Claim
	// is held back. A queue has at most as many as it leaves for others: half of them when it
	// is alone. Each takes about 200 bytes of memory, beside MemoryBytes. Messages that were
	// leased before the store was opened stay leased. 0: one for each 256 bytes of
	// MemoryBytes, 1,048,576 by default.
	MaxLeases int64

	// MinFreeBytes is the free space below which pushes fail with engine.ErrNoSpace. Leasing,
	// settling and cancelling go on. 0: 256 MiB; negative: pushes go on until the disk is
	// full.
	MinFreeBytes int64

	// BallastBytes is the size of a file kept in the directory only to be removed when the
	// disk is full. From then on pushes fail with engine.ErrNoSpace until there is room for it
	// again. Meanwhile the messages in the log are written to sstables, so that the log can go
	// on. The file is reserved without being written, which Linux can do; elsewhere there is
	// none. 0: 64 MiB; negative: none.
	BallastBytes int64

	// RetryFor is how long a write to the log is tried again that fails for want of space or
	// of file descriptors. Then the engine stops: every call fails with engine.ErrUnavailable
	// until the directory is opened again. 0: a minute; negative: not at all.
	RetryFor time.Duration

	// CloseTimeout is how long Close waits for a disk that does not answer. 0: 20 s.
	CloseTimeout time.Duration

	// Logger is told what an operator should know; nil: slog.Default.
	Logger *slog.Logger

	tune tuning
}

// tuning holds sizes that tests make small, so that few messages make much happen.
type tuning struct {
	store.Config
	readyMemory int64 // bytes of memory of ready heaps
	ready       int   // how many messages of a queue are in exact order

	stepped func(c *call) // is called at the end of each step, under the lock; may be nil
}

// LeastMemory is the least Config.MemoryBytes.
const LeastMemory = 8 << 20

const (
	defaultMemory    = 256 << 20
	bytesPerLease    = 256
	defaultMinFree   = 256 << 20
	defaultBallast   = 64 << 20
	defaultRetry     = time.Minute
	defaultClose     = 20 * time.Second
	defaultSegment   = 16 << 20
	defaultSpan      = 7 * defaultSegment
	defaultEntry     = 256 << 20
	leastReadyMemory = 4 << 20
	defaultFanIn     = 8
	defaultMerge     = 256 << 20
)

func (c *Config) withDefaults() Config {
	var d Config
	if c != nil {
		d = *c
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	d.MemoryBytes = cmp.Or(d.MemoryBytes, defaultMemory)
	d.MemoryBytes = max(LeastMemory, d.MemoryBytes)
	if d.MaxLeases <= 0 {
		d.MaxLeases = d.MemoryBytes / bytesPerLease
	}
	d.MinFreeBytes = cmp.Or(d.MinFreeBytes, defaultMinFree)
	d.BallastBytes = cmp.Or(d.BallastBytes, defaultBallast)
	d.RetryFor = cmp.Or(d.RetryFor, defaultRetry)
	if d.CloseTimeout <= 0 {
		d.CloseTimeout = defaultClose
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	t := &d.tune
	t.Now, t.RetryFor, t.Logger = d.Now, d.RetryFor, d.Logger
	t.MemoryBytes, t.MinFreeBytes, t.BallastBytes = d.MemoryBytes, d.MinFreeBytes, d.BallastBytes
	if t.FS == nil {
		t.FS = vfs.OS{}
	}
	t.Memtable = cmp.Or(t.Memtable, max(LeastMemory/3, d.MemoryBytes/6))
	t.Segment = cmp.Or(t.Segment, defaultSegment)
	t.Span = cmp.Or(t.Span, defaultSpan)
	t.Ahead = cmp.Or(t.Ahead, store.AheadSpans)
	t.readyMemory = cmp.Or(t.readyMemory, max(leastReadyMemory, d.MemoryBytes/4))
	t.ready = cmp.Or(t.ready, readyLen)
	t.Entry = cmp.Or(t.Entry, defaultEntry)
	t.FanIn = cmp.Or(t.FanIn, defaultFanIn)
	t.Merged = cmp.Or(t.Merged, sstable.MaxEntries)
	t.Merge = cmp.Or(t.Merge, defaultMerge)
	t.Openers = cmp.Or(t.Openers, runtime.GOMAXPROCS(0))
	if t.Between == nil {
		t.Between = func(string) {}
	}
	return d
}
