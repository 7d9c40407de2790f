package diskengine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// store is the seam to Pebble: batches that are applied in order and synced
// together, and the failure that ends it all.
type store struct {
	db   *pebble.DB
	log  *slog.Logger
	disk *disk

	mu sync.Mutex // held while a batch is applied: their order is that of their sequence numbers

	flushed chan struct{} // holds one token: a memtable was flushed

	durable atomic.Uint64 // all batches up to this sequence number are synced
	failure atomic.Pointer[error]
}

// memTables is how many tables of recent writes there are at most: one that is
// written to and those that are being flushed.
const memTables = 4

// l0Compaction is twice the number of flushed tables over one another that make a
// compaction worth its while: most messages are gone before there are so many, and
// are then not written again.
const l0Compaction = 16

func openStore(dir string, lock *pebble.Lock, cfg *Config, b *ballast) (*store, error) {
	s := &store{log: cfg.Logger, flushed: make(chan struct{}, 1), disk: newDisk(cfg.FS, cfg.RetryFor, b)}
	s.disk.fail = func(err error) { _ = s.fail(err) }
	flushes := flushes{store: s, retryFor: cfg.RetryFor}
	opts := &pebble.Options{
		FS:                          s.disk,
		Lock:                        lock,
		CacheSize:                   cfg.CacheBytes + memTables/2*int64(cfg.MemTableBytes), // Pebble takes those in use out of it
		MemTableSize:                cfg.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       l0Compaction,
		L0StopWritesThreshold:       1000,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		FormatMajorVersion:          pebbleFormat,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Merger:                      sumMerger,
		Logger:                      pebbleLogger{s},
		EventListener: &pebble.EventListener{
			FlushEnd: func(info pebble.FlushInfo) {
				flushes.end(info)
				select {
				case s.flushed <- struct{}{}:
				default:
				}
			},
			BackgroundError: flushes.failed,
			DataCorruption: func(info pebble.DataCorruptionInfo) {
				s.log.Error("tarry disk: damaged data", "detail", info.String())
			},
		},
	}
	opts.Experimental.TombstoneDenseCompactionThreshold = -1 // off: what was flushed of a queue is all tombstones in the end, and none below its mark is walked
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		opts.Levels[i].BlockSize = 8 << 10
	}
	opts.Levels[0].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression } // soon written again
	opts.Levels[1].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
	err := guard(func() (err error) {
		s.db, err = pebble.Open(dir, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.disk.armed.Store(true)
	if err := s.failed(); err != nil { // Pebble says so only to its logger
		_ = guard(s.db.Close)
		return nil, err
	}
	return s, nil
}

// guard turns a panic of Pebble into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok {
				err = e
			} else {
				err = fmt.Errorf("%v", p)
			}
		}
	}()
	return fn()
}

// failed returns why the store can no longer be used, or nil.
func (s *store) failed() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the store. The first cause stays.
func (s *store) fail(err error) error {
	first := s.failure.CompareAndSwap(nil, &err)
	s.disk.freeze()
	if first {
		s.log.Error("tarry disk: stopped", "error", err)
	}
	return s.failed()
}

// applied is a batch that is visible and whose sync has begun.
type applied struct {
	batch *pebble.Batch
	seq   uint64
	kind  durability
}

// durability is what a batch has to outlive when wait returns.
type durability bool

const (
	synced  durability = false // a loss of power
	written durability = true  // the end of the process
)

// apply makes a batch visible and begins its sync; wait must be called for it
// afterwards.
func (s *store) apply(b *pebble.Batch, kind durability) (applied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed(); err != nil {
		return applied{}, err
	}
	if kind == synced {
		s.disk.awaited.Add(1)
	}
	if err := guard(func() error { return s.db.ApplyNoSyncWait(b, pebble.Sync) }); err != nil {
		return applied{}, s.fail(err)
	}
	if err := s.failed(); err != nil { // Pebble says so only to its logger
		return applied{}, err
	}
	return applied{b, uint64(b.SeqNum()), kind}, nil
}

// applyLazily makes a batch visible that becomes durable with the next sync.
func (s *store) applyLazily(b *pebble.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failed(); err != nil {
		return err
	}
	if err := guard(func() error { return s.db.Apply(b, pebble.NoSync) }); err != nil {
		return s.fail(err)
	}
	return s.failed()
}

// wait waits until an applied batch is as durable as it has to be, and gives it back.
func (s *store) wait(a applied) error {
	err := a.batch.SyncWait()
	if a.kind == synced {
		s.disk.awaited.Add(-1)
	}
	if err == nil {
		err = a.batch.Close()
	}
	if err != nil {
		return s.fail(err)
	}
	if err := s.failed(); err != nil { // a frozen disk pretends that it is synced
		return err
	}
	if a.kind == synced {
		s.raise(a.seq)
	}
	return nil
}

// raise notes that all batches up to seq are synced.
func (s *store) raise(seq uint64) {
	for {
		old := s.durable.Load()
		if old >= seq || s.durable.CompareAndSwap(old, seq) {
			return
		}
	}
}

// syncTo waits until all batches up to seq are durable.
func (s *store) syncTo(seq uint64) error {
	if s.durable.Load() >= seq {
		return s.failed()
	}
	b := s.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return err
	}
	a, err := s.apply(b, synced)
	if err != nil {
		return err
	}
	a.seq = seq // its own is that of the batch to come
	return s.wait(a)
}

// get passes the value of a key to fn, or answers false. The value is valid only
// within fn.
func (s *store) get(r pebble.Reader, key []byte, fn func(v []byte) error) (bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = fn(v)
	return true, errors.Join(err, closer.Close())
}

// scan calls fn for the entries from lower up to but without upper, until fn
// answers false.
func scan(r pebble.Reader, lower, upper []byte, fn func(k, v []byte) (bool, error)) error {
	return walk(r, lower, upper, (*pebble.Iterator).First, (*pebble.Iterator).Next, fn)
}

// scanBack is scan the other way round.
func scanBack(r pebble.Reader, lower, upper []byte, fn func(k, v []byte) (bool, error)) error {
	return walk(r, lower, upper, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, fn)
}

func walk(r pebble.Reader, lower, upper []byte, first, next func(*pebble.Iterator) bool, fn func(k, v []byte) (bool, error)) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return err
	}
	for ok := first(it); ok; ok = next(it) {
		var v []byte
		if v, err = it.ValueAndErr(); err != nil {
			break
		}
		var more bool
		if more, err = fn(it.Key(), v); err != nil || !more {
			break
		}
	}
	return errors.Join(err, it.Close())
}

// pebbleLogger keeps Pebble's chatter away and its fatal errors from ending the
// process.
type pebbleLogger struct{ s *store }

func (pebbleLogger) Infof(string, ...any) {}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.s.log.Log(context.Background(), slog.LevelDebug, "tarry disk: "+fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			_ = l.s.fail(err)
			return
		}
	}
	_ = l.s.fail(fmt.Errorf(format, args...))
}
