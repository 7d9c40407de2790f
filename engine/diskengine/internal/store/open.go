package store

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// Open opens the sstables that a manifest names, and looks at the free space.
func (st *Store) Open(s *manifest.State) error {
	st.id, st.Secret, st.NextFile = s.Store, s.Secret, s.NextFile
	st.sealedAt, st.Replayed = s.Replay, s.Replay
	st.Memtables = memtable.New(&memtable.Config{Keep: st.cfg.MemoryBytes / 6, OnHeap: st.cfg.OnHeap})
	if err := st.openTables(s); err != nil {
		return err
	}
	st.Space = openSpace(st)
	return nil
}

// Manifest opens the manifest, and makes the first one of a new store.
func (st *Store) Manifest() (*manifest.Manifest, error) {
	man, err := manifest.Open(st.FS, st.Dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return man, err
	}
	parts := []string{manifest.LogName, manifest.TablesName}
	for _, name := range parts {
		within, err := st.FS.List(filepath.Join(st.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(within) > 0 { // a new store has its manifest before it has any of these files
			return nil, &vfs.DamageError{What: manifest.ErrDamaged, File: filepath.Join(st.Dir, manifest.Name), Reason: "it is missing, and " + name + " is not empty"}
		}
	}
	for _, name := range parts {
		if err := vfs.MkdirAll(st.FS, filepath.Join(st.Dir, name)); err != nil {
			return nil, err
		}
	}
	if err := st.syncAbove(); err != nil {
		return nil, err
	}
	var b [24]byte
	st.Random(b[:])
	first := manifest.State{Store: binary.LittleEndian.Uint64(b[:]), NextID: 1, NextQueue: 1, NextFile: 1}
	copy(first.Secret[:], b[8:])
	return manifest.Create(st.FS, st.Dir, first)
}

// openTables removes the sstables that do not count and opens the others, several at a time.
func (st *Store) openTables(s *manifest.State) error {
	dir := filepath.Join(st.Dir, manifest.TablesName)
	if len(s.Tables) == 0 { // a program that copies a store may leave out empty directories
		if err := vfs.MkdirAll(st.FS, dir); err != nil {
			return err
		}
	}
	if err := sstable.Sweep(st.FS, dir, s.Names); err != nil {
		return err
	}
	all := make([]*Source, len(s.Tables))
	defer func() {
		opened := slices.DeleteFunc(slices.Clone(all), func(src *Source) bool { return src == nil })
		st.setTables(st.Tables.with(opened, nil))
	}()
	var group errgroup.Group
	group.SetLimit(st.cfg.Openers)
	for i, r := range s.Tables {
		group.Go(func() error {
			open, err := sstable.Open(st.FS, dir, r.Number, st.tableConfig())
			if err != nil {
				return err
			}
			all[i] = &Source{Table: open, Area: memtable.Area(r.Area), since: 1}
			return r.Restore(st.Dir, open)
		})
	}
	return group.Wait()
}

func (st *Store) tableConfig() *sstable.Config {
	return &sstable.Config{ID: st.id, BlockBytes: st.cfg.Block, GroupWords: st.cfg.Group, Salt: st.salt}
}

// logSpares is how many segments of the log are made ahead.
const logSpares = 2

// Random fills b with unpredictable bytes.
func (st *Store) Random(b []byte) {
	if fn := st.cfg.Random; fn != nil {
		fn(b)
		return
	}
	_, _ = rand.Read(b) // never fails
}

func (st *Store) salt() uint64 {
	var b [8]byte
	st.Random(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// OpenLog opens the log, and has each entry that counts applied.
func (st *Store) OpenLog(s *manifest.State, apply func(wal.Entry) error) (err error) {
	c := &st.cfg
	keep := int(c.Span/c.Segment) + 3 // as many as a flush releases at once: they are used again
	cfg := &wal.Config{ID: st.id, SegmentBytes: c.Segment, Spares: logSpares, Keep: keep, MaxEntry: c.Entry, RetryFor: c.RetryFor, Logger: st.Slog, Still: c.Still, Salt: st.salt,
		Begun: s.Begun, Short: st.Space.IsShort, Relieve: st.Space.giveUp, Synced: st.Disk.Syncs.Observe}
	st.Log, _, err = wal.Open(st.FS, filepath.Join(st.Dir, manifest.LogName), cfg, wal.Pos(s.Replay), apply)
	return err
}

// Start begins the log, and then the work in the background.
func (st *Store) Start(man *manifest.Manifest) error {
	if err := st.begin(man); err != nil {
		return err
	}
	st.Compactor = newCompactor(st, man)
	st.Compactor.start()
	return nil
}

// syncAbove makes the names of the directory and of those above it durable: a process may have
// made them and crashed before it synced them.
func (st *Store) syncAbove() error {
	for dir := st.Dir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if err := st.FS.SyncDir(dir); errors.Is(err, syscall.EIO) {
			return err
		} else if err != nil {
			break // it belongs to another user, or cannot be synced
		}
	}
	return nil
}

// begin begins the log, and notes that in the manifest. If the disk is full, the next manifest
// says it.
func (st *Store) begin(man *manifest.Manifest) error {
	s := man.State()
	if s.Begun {
		return nil
	}
	err := st.Log.Begin()
	if err == nil {
		s.Begun = true
		err = man.Write(s)
	}
	if vfs.IsFull(err) && !errors.Is(err, manifest.ErrFailed) && st.Log.Err() == nil {
		return nil
	}
	return err
}
