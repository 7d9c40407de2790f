package store

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

// Store keeps entries in a directory: it has the log, the memtables and the sstables, and the
// compactor that moves entries from one to the next. It knows no rules for them.
type Store struct {
	cfg     Config
	hooks   Hooks
	Dir     string
	FS      vfs.FS // disk
	Disk    *Measured
	Space   *Space
	Log     *wal.Log
	id      uint64
	Secret  sstable.Secret
	Slog    *slog.Logger
	Broken  atomic.Pointer[error] // why the store stopped, if not because of the log
	pushing *semaphore.Weighted   // bytes of pushes under way
	Life    context.Context       // ends when the store closes
	End     context.CancelFunc

	Compactor *Compactor

	Outer atomic.Pointer[Sources] // tables as they were a moment ago: they are read without the lock

	// Mu guards what follows, and all that the engine has in memory. It is held for no call of
	// the file system.
	Mu        Lock
	Memtables *memtable.Tables
	Tables    *Sources
	changes   uint64 // how often the set of sstables was replaced
	NextFile  uint64

	Replayed uint64 // the position from which the log is replayed

	Epoch     uint32 // how many memtables were dropped
	sealedAt  uint64 // the position of the log when the last one was sealed
	rewritten int64  // bytes written to the log again at the last flush, as they are in no sstable
	said      int64  // such bytes after replayed
	lookAt    uint64 // the position of the log at which the compactor looks next

	Rewriting int64 // bytes written again by the flush under way
}

// Config sets up a Store. The first fields are those of diskengine.Config. The others are sizes
// that tests make small, so that few messages make much happen.
type Config struct {
	Now                                     func() time.Time
	MemoryBytes, MinFreeBytes, BallastBytes int64
	RetryFor                                time.Duration
	Logger                                  *slog.Logger

	FS       vfs.FS
	Segment  int64 // bytes of a segment of the log; 0: that of package wal
	Memtable int64 // bytes of memory at which a memtable is sealed
	Span     int64 // bytes of the log since the last seal at which a memtable is sealed at the latest
	Ahead    int   // spans by which the log may be ahead of sstables before pushes wait; negative: any
	Entry    int   // bytes that an entry of the log may have
	Block    int   // bytes of a block of an sstable
	Group    int   // see sstable.Config.GroupWords
	Head     int   // bytes that are read of a long value first; 0: headBytes
	FanIn    int   // sstables of about one size that are merged
	Merged   int   // entries that they have together at most
	Merge    int64 // bytes that they have together at most, unless that is less than mergePart of all
	Openers  int   // sstables that are opened at the same time
	Still    bool  // nothing happens by itself, only through the functions of package diskengine's export_test.go
	OnHeap   bool  // memtables are on the heap, where the race detector sees them

	Between func(where string) // is called between the slices of background work
	Random  func(b []byte)     // fills b; nil: crypto/rand does
	Held    func(begins bool)  // is called when the lock was taken, and before it is released; may be nil
}

// Hooks are what the store asks of the engine.
type Hooks struct {
	Rewrite    func() error                     // writes to the log again what is neither in memtables nor in sstables
	ForgetIdle func() error                     // drops what need not be flushed; called before a flush
	Refused    func(op string) error            // why a push is refused; nil: it is not
	Next       func() (id uint64, queue uint32) // the next ones to be given; the lock is held
}

// New returns the store of a directory, with nothing open.
func New(dir string, cfg Config, h Hooks) *Store {
	st := &Store{cfg: cfg, hooks: h, Dir: dir, Slog: cfg.Logger, pushing: semaphore.NewWeighted(cfg.MemoryBytes / enterPart)}
	st.Mu.held = cfg.Held
	st.setTables(new(Sources))
	st.Disk = &Measured{FS: cfg.FS, retryFor: cfg.RetryFor, slog: cfg.Logger}
	st.FS = st.Disk
	st.Life, st.End = context.WithCancel(context.Background())
	return st
}

// mostUnwritten is the most bytes of memory that are in no sstable. The memtables that are
// flushed may be written already, but must stay until their sstable counts: together they are
// within MemoryBytes. Mu is held.
func (st *Store) mostUnwritten() int64 {
	flushed := st.cfg.Memtable
	if sealed := st.Compactor.Sealed; len(sealed) > 0 {
		flushed = max(flushed, sealed[0].memory)
	}
	return min(4*st.cfg.Memtable, st.cfg.MemoryBytes-flushed)
}

// setTables replaces the set of sstables. The lock is held.
func (st *Store) setTables(s *Sources) {
	st.changes++
	st.Tables = s
	st.Outer.Store(s)
}

// Failed returns why the store has stopped; nil: it has not.
func (st *Store) Failed() error {
	if err := st.Broken.Load(); err != nil {
		return *err
	}
	select {
	case <-st.Log.Failed():
		return st.Log.Err()
	default:
		return nil
	}
}

// Stop stops the store: from now on all calls fail, until it is opened again. tell logs that.
// It is called without the lock, as a logger may block.
func (st *Store) Stop(err error) (tell func()) {
	if !st.Broken.CompareAndSwap(nil, &err) {
		return func() {}
	}
	return func() {
		st.Slog.Error("tarry disk: the store stopped, until it is opened again", "dir", st.Dir, "error", err)
	}
}

// Appended has the compactor look after some bytes more of the log. Mu is held.
func (st *Store) Appended(pos wal.Pos) {
	c := &st.cfg
	if uint64(pos) >= st.lookAt || st.Memtables.Loose() >= c.Memtable/mostLoose {
		st.lookAt = uint64(pos) + uint64(min(c.Span, c.Memtable)/16)
		_, _ = st.Compactor.assess()
		st.Compactor.Wake()
	}
}
