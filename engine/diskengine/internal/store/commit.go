package store

import (
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// commit makes durable which sstables count: the present ones, with more and without less. It
// also sets the position from which the log is replayed; 0: as before. It leaves out sstables
// without a live entry, which it returns as gone.
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
	s := k.man.State()
	if s.Tables, gone, err = k.rows(&s, all, dirty); err != nil {
		return nil, err
	}
	st.Mu.Lock()
	end, failed := st.Log.End(), st.Failed()
	s.NextFile = st.NextFile
	s.NextID, s.NextQueue = st.hooks.Next()
	st.Mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	// A deletion must not be durable before its record is: a message that moved would be lost. A
	// message deleted by now has its record once the step under way has ended, unless the log
	// refused it.
	st.cfg.Between("settling")
	if err := st.Log.Wait(st.Life, end); err != nil {
		return nil, err
	}
	if replay > 0 {
		s.Replay = uint64(replay)
	}
	s.Begun = s.Begun || st.Log.Synced() > 0
	return gone, k.man.Write(s)
}

// rows returns the sstables for the next manifest, and as gone those without a live entry. was is
// the manifest in force: the deletion bitmaps of sstables that are not dirty are as there.
func (k *Compactor) rows(was *manifest.State, all, dirty []*Source) (rows []manifest.Table, gone []*Source, err error) {
	for _, src := range all {
		r, ok := was.Table(src.Number())
		if !ok {
			r = manifest.Table{Number: src.Number(), Area: uint8(src.Area), Entries: src.Len(), Alive: src.Len(), Bytes: uint64(src.Bytes())}
		}
		if slices.Contains(dirty, src) {
			if err := k.Between("deletions"); err != nil {
				return nil, nil, err
			}
			bits, alive := src.AppendBits(nil)
			r.Deleted, r.Alive = bits, uint32(alive)
		}
		if r.Alive == 0 {
			gone = append(gone, src)
			continue
		}
		rows = append(rows, r)
	}
	return rows, gone, nil
}

// clear removes sstables that the manifest does not name. One that cannot be removed takes up
// space until the store is opened again.
func (k *Compactor) clear(gone []*Source) {
	var errs []error
	for _, src := range gone {
		errs = append(errs, src.Remove())
	}
	if err := errors.Join(errs...); err != nil {
		k.st.Slog.Warn("tarry disk: files that are not needed could not be removed; they will be when the store is opened again", "dir", k.st.Dir, "error", err)
	}
}
