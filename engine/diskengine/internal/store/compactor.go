package store

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Compactor works in the background: it writes memtables to sstables, merges sstables, and
// writes the manifest. One goroutine flushes and another merges, so that a long merge holds up
// no flush. A third watches the free space.
type Compactor struct {
	st      *Store
	Flushes Task // wakes the flusher
	Merges  Task // wakes the merger
	Looks   Task // wakes the watcher of the free space
	group   sync.WaitGroup
	Counts  compactorCounts

	FlushMu, MergeMu longLock // one flush and one merge at a time, whoever asks

	seen wal.Pos // the end of the log when a merge was last paced

	mu  longLock // one manifest at a time
	man *manifest.Manifest

	// Guarded by Store.Mu:
	Sealed  []*sealedTable // still to be flushed, the oldest first
	drawn   chan struct{}  // closed when there is more room
	failing error          // the error of the last flush
	cramped bool           // there is no space for merges
	delayed time.Time      // until when slowed pushes wait

	first   chan struct{} // has a token for the first of the pushes that wait
	pushes  atomic.Int32  // how pushes are let in
	coming  atomic.Int64  // bytes of pushes that were let in and are not in the log yet
	Waiting atomic.Int64  // how many pushes wait
}

// compactorCounts counts what the compactor has done.
type compactorCounts struct{ Flushes, Merges, Failures atomic.Int64 }

// sealedTable is a memtable that was sealed, or several that are flushed together.
type sealedTable struct {
	*memtable.Sealed
	replay wal.Pos // from where the log is replayed once it is in sstables
	told   bool    // names, leases and so on were written to the log again after the seal
	at     time.Time

	memory      int64 // bytes that it took then
	all, passed int   // entries that it had then, and those written since
}

// written is about how many bytes of the memtable's memory have been written.
func (w *sealedTable) written() int64 {
	return int64(float64(w.memory) * float64(w.passed) / float64(max(1, w.all)))
}

func newCompactor(st *Store, man *manifest.Manifest) *Compactor {
	k := &Compactor{st: st, man: man, Flushes: newTask(), Merges: newTask(), Looks: newTask(),
		FlushMu: newLongLock(), MergeMu: newLongLock(), mu: newLongLock(), drawn: make(chan struct{}), first: make(chan struct{}, 1)}
	k.first <- struct{}{}
	return k
}

func (k *Compactor) start() {
	if k.st.cfg.Still {
		k.Wake()
		return
	}
	k.group.Go(func() { k.loop(k.Flushes, k.FlushAll) })
	k.group.Go(func() { k.loop(k.Merges, k.Merge) })
	k.group.Go(func() { k.loop(k.Looks, k.Look) })
	k.Wake()
}

// Wake has the compactor look for something to flush, and at the free space.
func (k *Compactor) Wake() {
	Signal(k.Flushes.Told)
	Signal(k.Looks.Told)
}

// Look looks at the free space, which other programs use up too. If there is enough again it
// has failed flushes and merges tried at once.
func (k *Compactor) Look() error {
	if k.st.Space.look() {
		Signal(k.Flushes.Eased)
		Signal(k.Merges.Eased)
	}
	return nil
}

// Wait waits until all has ended; the engine's life is over by then.
func (k *Compactor) Wait() { k.group.Wait() }

// TablesDir is the directory of sstables.
func (st *Store) TablesDir() string { return filepath.Join(st.Dir, manifest.TablesName) }

// number returns the number of a new sstable.
func (st *Store) number() uint64 {
	st.Mu.Lock()
	defer st.Mu.Unlock()
	n := st.NextFile
	st.NextFile++
	return n
}
