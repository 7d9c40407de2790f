package store

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Merge merges sstables until none should be merged.
func (k *Compactor) Merge() error {
	k.MergeMu.Lock()
	defer k.MergeMu.Unlock()
	if k.anyDead() {
		if err := k.dropDead(); err != nil {
			return err
		}
	}
	for {
		some := k.choose()
		fit := k.fitting(some)
		k.st.Mu.Lock()
		k.cramped = len(fit) < len(some)
		k.st.Mu.Unlock()
		if len(fit) == 0 {
			return nil
		}
		some = fit
		if err := k.MergeTables(some); err != nil {
			return err
		}
	}
}

// choose returns sstables to be merged into one; none: there is nothing to do. Its first
// choice is an sstable with too many deleted entries, its second some of about one size. Its
// third, if all sstables together take half as much again as their live entries, is the one
// with the largest deleted share.
func (k *Compactor) choose() []*Source {
	var all Sources
	now := time.Now()
	k.st.Mu.Lock()
	for a, list := range k.st.Tables.Of {
		all.Of[a] = slices.DeleteFunc(slices.Clone(list), func(s *Source) bool { return now.Before(s.rests) })
	}
	k.st.Mu.Unlock()
	var worst *Source
	bytes, left := int64(0), int64(0)
	for _, list := range all.Of {
		list = slices.DeleteFunc(list, func(s *Source) bool { return s.Living() == 0 })
		most := int64(0)
		for _, src := range list {
			most += src.left() / mergePart
		}
		most = max(most, k.st.cfg.Merge)
		for _, src := range list {
			if src.thin() {
				return k.within(beside(list, src), most)
			}
			bytes, left = bytes+src.Bytes(), left+src.left()
			if worst == nil || src.share() < worst.share() {
				worst = src
			}
		}
		slices.SortFunc(list, func(a, b *Source) int { return cmp.Compare(a.Living(), b.Living()) })
		for i := 0; i < len(list); {
			n := i + 1
			for n < len(list) && list[n].Living() <= 4*list[i].Living()+1024 {
				n++
			}
			if fan := k.st.cfg.FanIn; n-i >= fan {
				if some := k.within(list[i:min(n, i+4*fan)], most); len(some) > fan/2 {
					return some
				}
			}
			i = n
		}
	}
	if bytes*2 > left*3 && worst.wins() {
		return []*Source{worst}
	}
	return nil
}

// Living is how many live entries an sstable has.
func (s *Source) Living() int { return s.Count(0, s.Len()) }

// mergePart is the part of an area, 1/mergePart, that one merge may take. So a merge is short,
// while large stores have few sstables.
const mergePart = 8

// within returns the first of some sstables, as many as may be merged into one: their live
// entries have most bytes at most.
func (k *Compactor) within(some []*Source, most int64) []*Source {
	entries := 0
	for n, src := range some {
		entries += src.Living()
		if most -= src.left(); n > 0 && (most < 0 || entries > k.st.cfg.Merged) {
			return some[:n]
		}
	}
	return some
}

// beside returns an sstable, with others of a list that are not much larger and have lost many
// entries too.
func beside(list []*Source, src *Source) []*Source {
	some := []*Source{src}
	for _, o := range list {
		if o != src && o.share() < 0.8 && o.Living() <= 4*src.Living() {
			some = append(some, o)
		}
	}
	return some
}

// fitting returns those of some sstables to be merged for which there is space: their live
// entries are written before they are removed.
func (k *Compactor) fitting(some []*Source) []*Source {
	some = slices.Clone(some)
	slices.SortFunc(some, func(a, b *Source) int { return cmp.Compare(a.left(), b.left()) })
	n, bytes := 0, int64(0)
	for wins := true; n < len(some); n++ {
		wins = wins && some[n].wins()
		if !k.st.Space.fits(bytes+some[n].left(), wins) {
			break
		}
		bytes += some[n].left()
	}
	if n == 1 && !some[0].wins() {
		n = 0 // nothing would be gained
	}
	return some[:n]
}

// left is about how many bytes the live entries of an sstable take.
func (s *Source) left() int64 { return s.Weight() }

// share is about what part of an sstable's bytes its live entries take.
func (s *Source) share() float64 { return float64(s.left()) / float64(s.Bytes()) }

// thin reports whether much of an sstable is deleted: two fifths of its bytes, or three
// quarters of its entries. Each entry takes memory.
func (s *Source) thin() bool { return s.share() < 0.6 || uint64(s.Living())*4 < uint64(s.Len()) }

// wins reports whether a merge of the sstable alone frees enough space to be worth it.
func (s *Source) wins() bool { return s.share() < 0.75 || s.thin() }

// MergeTables replaces some sstables by one.
func (k *Compactor) MergeTables(some []*Source) error {
	st := k.st
	tables := make([]*sstable.Table, len(some))
	for i, src := range some {
		tables[i] = src.Table
	}
	m, err := sstable.Merge(st.FS, st.TablesDir(), st.number(), k.config("merge", calmMerge, k.merging), tables)
	if errors.Is(err, sstable.ErrClosed) { // one of them has no live entry any more
		return nil
	}
	if err != nil {
		k.spoiled(some, err)
		return err
	}
	if m.Run.Len() == 0 {
		if err := m.Run.Remove(); err != nil {
			return err
		}
		return k.dropDead()
	}
	for m.CatchUp() > StepItems {
	}
	into := &Source{Table: m.Run, Area: some[0].Area, dirty: true}
	for _, src := range some {
		into.since = max(into.since, src.since)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	m.CatchUp()
	st.cfg.Between("merged")
	gone, err := k.commit([]*Source{into}, some, 0)
	if err != nil {
		if errors.Is(err, manifest.ErrFailed) { // it may name the new sstable
			return errors.Join(err, m.Run.Close())
		}
		return errors.Join(err, m.Run.Remove())
	}
	gone = append(gone, some...)
	late := 0
	for n := StepItems + 1; n > StepItems; { // a purge may have removed many entries meanwhile
		n = m.CatchUp()
		late += n
	}
	st.Mu.Lock()
	if late+m.CatchUp() > 0 {
		into.dirty = true
	}
	for i, src := range some {
		src.merged, src.nth, src.into = m, i, into
	}
	st.setTables(st.Tables.with([]*Source{into}, gone))
	k.drew()
	st.Mu.Unlock()
	k.Counts.Merges.Add(1)
	k.clear(gone)
	return nil
}

// How long an sstable is left out of merges that is damaged, or that the disk could not read,
// which may pass. Meanwhile others are merged.
const (
	restDamaged    = 100 * 365 * 24 * time.Hour
	restUnreadable = time.Hour
)

// spoiled lets the sstable rest that could not be read for a merge.
func (k *Compactor) spoiled(some []*Source, err error) {
	var damage *vfs.DamageError
	var unread *fs.PathError
	name, rest := "", restDamaged
	switch {
	case errors.As(err, &damage):
		name = damage.File
	case errors.Is(err, syscall.EIO) && errors.As(err, &unread):
		name, rest = unread.Path, restUnreadable // the new sstable's path matches none of some
	}
	until := time.Now().Add(rest)
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	for _, src := range some {
		if sstable.Name(k.st.TablesDir(), src.Number()) == name && src.rests.Before(until) {
			src.rests = until
		}
	}
}

// dropDead removes the sstables without a live entry.
func (k *Compactor) dropDead() error {
	st := k.st
	k.mu.Lock()
	defer k.mu.Unlock()
	var gone []*Source
	err := st.Space.spared(func() (err error) {
		gone, err = k.commit(nil, nil, 0)
		return err
	})
	if err != nil {
		return err
	}
	st.Mu.Lock()
	st.setTables(st.Tables.with(nil, gone))
	st.Mu.Unlock()
	k.clear(gone)
	return nil
}

// anyDead reports whether an sstable has lost its last live entry since the last manifest.
func (k *Compactor) anyDead() bool {
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	return slices.ContainsFunc(k.st.Tables.All(), func(s *Source) bool { return s.Living() == 0 && s.dirty })
}
