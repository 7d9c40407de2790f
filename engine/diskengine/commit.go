package diskengine

import (
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/deletions"
	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
)

// commit makes durable which sstables count: the present ones, with more and without less. It
// also sets the position from which the log is replayed; 0: as before. It writes deletion
// bitmaps first, and leaves out sstables without a live entry, which it returns as gone.
func (k *compactor) commit(more, less []*source, replay wal.Pos) (gone []*source, err error) {
	e := k.e
	e.mu.Lock()
	all := e.tables.with(more, less).all()
	var dirty []*source
	for _, src := range all {
		if src.dirty {
			src.dirty = false
			dirty = append(dirty, src)
		}
	}
	s := k.man.State()
	s.NextID, s.NextQueue = uint64(e.nextID), e.nextQueue
	e.mu.Unlock()
	defer func() {
		if err != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, src := range dirty {
				src.dirty = true
			}
		}
	}()
	alive := make(map[*source]uint32)
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
		e.mu.Lock()
		end, failed := e.log.End(), e.failed()
		e.mu.Unlock()
		if failed != nil {
			return failed
		}
		e.cfg.tune.between("settling")
		return e.log.Wait(e.life, end)
	}
	if len(dirty) == 0 {
		if err := settled(); err != nil {
			return nil, err
		}
	} else {
		number = e.number()
		tables := make([]*sstable.Table, len(dirty))
		for i, src := range dirty {
			tables[i] = src.Table
		}
		counts, err := deletions.WriteBehind(e.fs, e.tablesDir(), number, e.id, tables, k.pace("marks", k.flushing), settled)
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
	s.Begun = s.Begun || e.log.Synced() > 0
	for _, src := range all {
		r := manifest.Table{Number: src.Number(), Area: uint8(src.area), Entries: src.Len(), Alive: src.Len(), Bytes: uint64(src.Bytes()), Deletions: src.deletions}
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
	e.mu.Lock()
	s.NextFile = e.nextFile
	e.mu.Unlock()
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
func (k *compactor) clear(gone []*source) {
	var errs []error
	for _, src := range gone {
		errs = append(errs, src.Remove())
	}
	errs = append(errs, k.sweepDeletions())
	if err := errors.Join(errs...); err != nil {
		k.e.slog.Warn("tarry disk: files that are not needed could not be removed; they will be when the store is opened again", "dir", k.e.dir, "error", err)
	}
}

// sweep removes the sstables and deletion bitmaps that the manifest does not name.
func (e *Engine) sweep(s *manifest.State) error {
	return errors.Join(sstable.Sweep(e.fs, e.tablesDir(), s.Names), deletions.Sweep(e.fs, e.tablesDir(), s.Names))
}

// readDeletions reads the deletion bitmaps of sstables that were just opened.
func (e *Engine) readDeletions(all []*source) error {
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
		if err := deletions.Restore(e.fs, e.tablesDir(), n, e.id, by[n]); err != nil {
			return err
		}
	}
	return nil
}
