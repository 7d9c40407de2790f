package diskengine

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry/engine/diskengine/internal/deletions"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// open opens the sstables that a manifest names, and looks at the free space.
func (st *store) open(s *manifest.State) error {
	st.id, st.secret, st.nextFile = s.Store, s.Secret, s.NextFile
	st.sealedAt, st.replayed = s.Replay, s.Replay
	st.memtables = memtable.New(&memtable.Config{Keep: st.cfg.memoryBytes / 6, OnHeap: st.cfg.tune.onHeap, Low: st.low})
	if err := st.openTables(s); err != nil {
		return err
	}
	st.space = openSpace(st)
	return nil
}

// manifest opens the manifest, and makes the first one of a new store.
func (st *store) manifest() (*manifest.Manifest, error) {
	man, err := manifest.Open(st.fs, st.dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return man, err
	}
	parts := []string{manifest.LogName, manifest.TablesName}
	for _, name := range parts {
		within, err := st.fs.List(filepath.Join(st.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(within) > 0 { // a new store has its manifest before it has any of these files
			return nil, &vfs.DamageError{What: manifest.ErrDamaged, File: filepath.Join(st.dir, manifest.Name), Reason: "it is missing, and " + name + " is not empty"}
		}
	}
	for _, name := range parts {
		if err := vfs.MkdirAll(st.fs, filepath.Join(st.dir, name)); err != nil {
			return nil, err
		}
	}
	if err := st.syncAbove(); err != nil {
		return nil, err
	}
	var b [24]byte
	st.random(b[:])
	first := manifest.State{Store: binary.LittleEndian.Uint64(b[:]), NextID: 1, NextQueue: 1, NextFile: 1}
	copy(first.Secret[:], b[8:])
	return manifest.Create(st.fs, st.dir, first)
}

// openTables removes the sstables that do not count and opens the others, several at a time.
// Then it reads their deletion bitmaps.
func (st *store) openTables(s *manifest.State) error {
	dir := filepath.Join(st.dir, manifest.TablesName)
	if len(s.Tables) == 0 { // a program that copies a store may leave out empty directories
		if err := vfs.MkdirAll(st.fs, dir); err != nil {
			return err
		}
	}
	if err := st.sweep(s); err != nil {
		return err
	}
	all := make([]*source, len(s.Tables))
	defer func() {
		opened := slices.DeleteFunc(slices.Clone(all), func(src *source) bool { return src == nil })
		st.setTables(st.tables.with(opened, nil))
	}()
	var group errgroup.Group
	group.SetLimit(st.cfg.tune.openers)
	for i, r := range s.Tables {
		group.Go(func() error {
			open, err := sstable.Open(st.fs, dir, r.Number, st.tableConfig())
			if err == nil {
				all[i] = &source{Table: open, area: memtable.Area(r.Area), since: 1, deletions: r.Deletions}
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return st.readDeletions(all)
}

// sweep removes the sstables and deletion bitmaps that the manifest does not name.
func (st *store) sweep(s *manifest.State) error {
	return errors.Join(sstable.Sweep(st.fs, st.tablesDir(), s.Names), deletions.Sweep(st.fs, st.tablesDir(), s.Names))
}

// readDeletions reads the deletion bitmaps of sstables that were just opened.
func (st *store) readDeletions(all []*source) error {
	by := make(map[uint64][]*sstable.Table)
	for _, src := range all {
		if src.deletions != 0 {
			by[src.deletions] = append(by[src.deletions], src.Table)
		}
	}
	numbers := make([]uint64, 0, len(by))
	for n := range by {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if err := deletions.Restore(st.fs, st.tablesDir(), n, st.id, by[n]); err != nil {
			return err
		}
	}
	return nil
}

func (st *store) tableConfig() *sstable.Config {
	return &sstable.Config{ID: st.id, BlockBytes: st.cfg.tune.block, GroupWords: st.cfg.tune.group, Salt: st.salt}
}

// logSpares is how many segments of the log are made ahead.
const logSpares = 2

func (st *store) logConfig() *wal.Config {
	t := &st.cfg.tune
	keep := int(t.span/t.segment) + 3 // as many as a flush releases at once: they are used again
	return &wal.Config{ID: st.id, SegmentBytes: t.segment, Spares: logSpares, Keep: keep, MaxEntry: st.cfg.entry, RetryFor: st.cfg.retryFor, Logger: st.slog, Still: t.still, Salt: st.salt,
		Short: st.space.isShort, Relieve: st.space.giveUp, Synced: st.disk.syncs.Observe}
}

// random fills b with unpredictable bytes.
func (st *store) random(b []byte) {
	if fn := st.cfg.tune.random; fn != nil {
		fn(b)
		return
	}
	_, _ = rand.Read(b) // never fails
}

func (st *store) salt() uint64 {
	var b [8]byte
	st.random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// openLog opens the log, and has each entry that counts applied.
func (st *store) openLog(s *manifest.State, apply func(wal.Entry) error) (err error) {
	cfg := st.logConfig()
	cfg.Begun = s.Begun
	st.log, _, err = wal.Open(st.fs, filepath.Join(st.dir, manifest.LogName), cfg, wal.Pos(s.Replay), apply)
	return err
}

// start begins the log, and then the work in the background.
func (st *store) start(man *manifest.Manifest) error {
	if err := st.begin(man); err != nil {
		return err
	}
	st.compactor = newCompactor(st, man)
	st.compactor.start()
	return nil
}

// syncAbove makes the names of the directory and of those above it durable: a process may have
// made them and crashed before it synced them.
func (st *store) syncAbove() error {
	for dir := st.dir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if err := st.fs.SyncDir(dir); errors.Is(err, syscall.EIO) {
			return err
		} else if err != nil {
			break // it belongs to another user, or cannot be synced
		}
	}
	return nil
}

// begin begins the log, and notes that in the manifest. If the disk is full, the next manifest
// says it.
func (st *store) begin(man *manifest.Manifest) error {
	s := man.State()
	if s.Begun {
		return nil
	}
	err := st.log.Begin()
	if err == nil {
		s.Begun = true
		err = man.Write(s)
	}
	if vfs.IsFull(err) && !errors.Is(err, manifest.ErrFailed) {
		return nil
	}
	return err
}

// low tells the compactor to make memory ready.
func (st *store) low() {
	if st.compactor != nil {
		signal(st.compactor.low)
	}
}
