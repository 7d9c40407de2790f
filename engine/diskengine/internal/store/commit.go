package store

import (
	"errors"

	"github.com/tarryhq/tarry/engine/diskengine/internal/deletions"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// commit makes durable which sstables count: the present ones, with more and without less. It
// also sets the position from which the log is replayed; 0: as before. It writes deletion
// bitmaps first, and leaves out sstables without a live entry, which it returns as gone.
func (k *Compactor) commit(more, less []*Source, replay wal.Pos) (gone []*Source, err error) {
	st := k.st
	st.Mu.Lock()
	all := st.Tables.with(more, less).All()
	var dirty []*Source
	for _, src := range all {
		if src.dirty {
			src.dirty = false
			dirty = append(dirty, src)
		}
	}
	s := k.man.State()
	s.NextID, s.NextQueue = st.hooks.Next()
	st.Mu.Unlock()
	defer func() {
		if err != nil {
			st.Mu.Lock()
			defer st.Mu.Unlock()
			for _, src := range dirty {
				src.dirty = true
			}
		}
	}()
	alive := make(map[*Source]uint32)
	var number uint64
	defer func() {
		if err != nil && number != 0 && !errors.Is(err, manifest.ErrFailed) { // it may name them
			err = errors.Join(err, k.sweepDeletions())
		}
	}()
	// A deletion must not be durable before its record is, not even in deletion bitmaps that
	// do not count yet: a message that moved would be lost. A message deleted by now has its
	// record once the step under way has ended, unless the log refused it.
	settled := func() error {
		st.Mu.Lock()
		end, failed := st.Log.End(), st.Failed()
		st.Mu.Unlock()
		if failed != nil {
			return failed
		}
		st.cfg.Between("settling")
		return st.Log.Wait(st.Life, end)
	}
	if len(dirty) == 0 {
		if err := settled(); err != nil {
			return nil, err
		}
	} else {
		number = st.number()
		tables := make([]*sstable.Table, len(dirty))
		for i, src := range dirty {
			tables[i] = src.Table
		}
		counts, err := deletions.Write(st.FS, st.TablesDir(), number, st.id, tables, k.Pace("marks", k.flushing), settled)
		if err != nil {
			return nil, err
		}
		for i, src := range dirty {
			alive[src] = counts[i]
		}
	}
	was := k.man.State()
	s.Tables = nil
	if replay > 0 {
		s.Replay = uint64(replay)
	}
	s.Begun = s.Begun || st.Log.Synced() > 0
	for _, src := range all {
		r := manifest.Table{Number: src.Number(), Area: uint8(src.Area), Entries: src.Len(), Alive: src.Len(), Bytes: uint64(src.Bytes()), Deletions: src.deletions}
		if old, ok := was.Table(src.Number()); ok {
			r.Alive = old.Alive
		}
		if n, ok := alive[src]; ok {
			if r.Alive, r.Deletions = n, number; n == 0 {
				gone = append(gone, src)
				continue
			}
		}
		s.Tables = append(s.Tables, r)
	}
	st.Mu.Lock()
	s.NextFile = st.NextFile
	st.Mu.Unlock()
	if err := k.man.Write(s); err != nil {
		return nil, err
	}
	for src := range alive {
		src.deletions = number
	}
	return gone, nil
}

// clear removes files that the manifest does not name: old sstables and deletion bitmaps. One that cannot be
// removed takes up space until the store is opened again.
func (k *Compactor) clear(gone []*Source) {
	var errs []error
	for _, src := range gone {
		errs = append(errs, src.Remove())
	}
	errs = append(errs, k.sweepDeletions())
	if err := errors.Join(errs...); err != nil {
		k.st.Slog.Warn("tarry disk: files that are not needed could not be removed; they will be when the store is opened again", "dir", k.st.Dir, "error", err)
	}
}
