package diskengine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// store keeps entries in a directory: it has the log, the memtables and the sstables, and the
// compactor that moves entries from one to the next. It does not know what an entry means.
type store struct {
	cfg     storeConfig
	hooks   hooks
	dir     string
	fs      vfs.FS // disk
	disk    *measured
	space   *space
	log     *wal.Log
	id      uint64
	secret  sstable.Secret
	slog    *slog.Logger
	broken  atomic.Pointer[error] // why the store stopped, if not because of the log
	pushing *semaphore.Weighted   // bytes of pushes under way
	life    context.Context       // ends when the store closes
	end     context.CancelFunc

	compactor *compactor

	outer atomic.Pointer[sources] // tables as they were a moment ago: they are read without the lock

	// mu guards what follows, and all that the engine has in memory. It is held for no call of
	// the file system.
	mu        lock
	memtables *memtable.Tables
	tables    *sources
	changes   uint64 // how often the set of sstables was replaced
	nextFile  uint64

	replayed uint64 // the position from which the log is replayed

	epoch     uint32 // how many memtables were dropped
	seals     uint64 // how many memtables were sealed
	sealedAt  uint64 // the position of the log when the last one was sealed
	rewritten int64  // bytes written to the log again at the last flush, as they are in no sstable
	said      int64  // such bytes after replayed
	lookAt    uint64 // the position of the log at which the compactor looks next

	rewriting int64 // bytes written again by the flush under way
}

// storeConfig is the part of Config that the store needs.
type storeConfig struct {
	now                                     func() time.Time
	memoryBytes, minFreeBytes, ballastBytes int64
	retryFor                                time.Duration
	entry                                   int // bytes that an entry of the log may have
	logger                                  *slog.Logger
	tune                                    storeTuning
}

// storeTuning holds sizes that tests make small, so that few messages make much happen.
type storeTuning struct {
	fs       vfs.FS
	segment  int64 // bytes of a segment of the log; 0: that of package wal
	memtable int64 // bytes of memory at which a memtable is sealed
	span     int64 // bytes of the log since the last seal at which a memtable is sealed at the latest
	ahead    int   // spans by which the log may be ahead of sstables before pushes wait; negative: any
	block    int   // bytes of a block of an sstable
	group    int   // see sstable.Config.GroupWords
	fanIn    int   // sstables of about one size that are merged
	merged   int   // entries that they have together at most
	openers  int   // sstables that are opened at the same time
	still    bool  // nothing happens by itself, only through the functions of export_test.go
	onHeap   bool  // memtables are on the heap, where the race detector sees them

	between func(where string) // is called between the slices of background work
	random  func(b []byte)     // fills b; nil: crypto/rand does
	held    func(begins bool)  // is called when the lock was taken, and before it is released; may be nil
}

// hooks are what the store asks of the engine.
type hooks struct {
	rewrite    func() error                     // writes to the log again what is neither in memtables nor in sstables
	forgetIdle func() error                     // drops what need not be flushed; called before a flush
	refused    func(op string) error            // why a push is refused; nil: it is not
	beginning  func() bool                      // no memtable may be sealed now; the lock is held
	next       func() (id uint64, queue uint32) // the next ones to be given; the lock is held
}

// newStore returns the store of a directory, with nothing open.
func newStore(dir string, cfg storeConfig, h hooks) *store {
	st := &store{cfg: cfg, hooks: h, dir: dir, slog: cfg.logger, pushing: semaphore.NewWeighted(cfg.memoryBytes / enterPart)}
	st.mu.held = cfg.tune.held
	st.setTables(new(sources))
	st.disk = &measured{FS: cfg.tune.fs, patience: fdRetry{cfg.retryFor, cfg.logger}}
	st.fs = st.disk
	st.life, st.end = context.WithCancel(context.Background())
	return st
}

// mostUnwritten is the most bytes of memory that are in no sstable. One memtable more may be
// written already, but must stay until its sstable counts: together they are within
// memoryBytes.
func (c *storeConfig) mostUnwritten() int64 {
	return min(4*c.tune.memtable, c.memoryBytes-c.tune.memtable)
}

// setTables replaces the set of sstables. The lock is held.
func (st *store) setTables(s *sources) {
	st.changes++
	st.tables = s
	st.outer.Store(s)
}

// failed returns why the store has stopped; nil: it has not.
func (st *store) failed() error {
	if err := st.broken.Load(); err != nil {
		return *err
	}
	select {
	case <-st.log.Failed():
		return st.log.Err()
	default:
		return nil
	}
}

// stop stops the store: from now on all calls fail, until it is opened again. tell logs that.
// It is called without the lock, as a logger may block.
func (st *store) stop(err error) (tell func()) {
	if !st.broken.CompareAndSwap(nil, &err) {
		return func() {}
	}
	return func() {
		st.slog.Error("tarry disk: the store stopped, until it is opened again", "dir", st.dir, "error", err)
	}
}

// appended has the compactor look after some bytes more of the log. mu is held.
func (st *store) appended(pos wal.Pos) {
	t := &st.cfg.tune
	if uint64(pos) >= st.lookAt || st.memtables.Loose() >= t.memtable/mostLoose {
		st.lookAt = uint64(pos) + uint64(min(t.span, t.memtable)/16)
		_, _ = st.compactor.assess()
		st.compactor.wake()
	}
}
