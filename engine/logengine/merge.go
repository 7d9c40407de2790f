package logengine

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
	"github.com/tarryhq/tarry/engine/logengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
)

// merge merges runs as long as there are some that should be.
func (k *keeper) merge() error {
	k.mergeMu.Lock()
	defer k.mergeMu.Unlock()
	if k.anyDead() {
		if err := k.dropDead(); err != nil {
			return err
		}
	}
	for {
		some := k.choose()
		fit := k.fitting(some)
		k.e.mu.Lock()
		if k.cramped = len(fit) < len(some); k.cramped {
			k.drew() // who waits need not
		}
		k.e.mu.Unlock()
		if len(fit) == 0 {
			return nil
		}
		some = fit
		if err := k.mergeRuns(some); err != nil {
			return err
		}
	}
}

// choose returns runs to be merged into one; none: all is well. Those of about one size are, once
// there are some of them, and each in which too many have died.
func (k *keeper) choose() []*source {
	e := k.e
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := recent.Live; a <= recent.Finished; a++ {
		list := slices.DeleteFunc(slices.Clone(e.runs.of[a]), func(s *source) bool { return s.bad })
		for _, src := range list {
			if src.thin() && src.living() > 0 {
				return k.beside(list, src)
			}
		}
		by := slices.DeleteFunc(slices.Clone(list), func(s *source) bool { return s.living() == 0 })
		slices.SortFunc(by, func(a, b *source) int { return cmp.Compare(a.living(), b.living()) })
		for i := 0; i < len(by); {
			n := i + 1
			for n < len(by) && by[n].living() <= 4*by[i].living()+1024 {
				n++
			}
			if n-i >= e.cfg.tune.fanIn {
				return by[i:min(n, i+4*e.cfg.tune.fanIn)]
			}
			i = n
		}
	}
	return nil
}

// living is how many are alive in a run.
func (s *source) living() int { return s.Count(0, s.Len()) }

// beside returns a run and those that are not larger and have lost many too.
func (k *keeper) beside(list []*source, src *source) (some []*source) {
	for _, o := range list {
		if n := o.living(); o == src || n*5 < int(o.Len())*4 && n <= 4*src.living() {
			some = append(some, o)
		}
	}
	return some
}

// fitting returns those of some runs that are to be merged for which there is space: what is left
// of them is written before they are removed.
func (k *keeper) fitting(some []*source) []*source {
	some = slices.Clone(some)
	slices.SortFunc(some, func(a, b *source) int { return cmp.Compare(a.left(), b.left()) })
	n, bytes := 0, int64(0)
	for thin := true; n < len(some); n++ {
		thin = thin && some[n].thin()
		if !k.e.space.fits(bytes+some[n].left(), thin) {
			break
		}
		bytes += some[n].left()
	}
	if n == 1 && !some[0].thin() {
		n = 0 // nothing would be won
	}
	return some[:n]
}

// left is about how many bytes those take that are alive in a run.
func (s *source) left() int64 {
	return int64(float64(s.Bytes()) * float64(s.living()) / float64(max(1, s.Len())))
}

// thin reports whether many have died in a run.
func (s *source) thin() bool { return uint64(s.living())*5 < uint64(s.Len())*3 }

// mergeRuns puts one run in the place of some.
func (k *keeper) mergeRuns(some []*source) error {
	e := k.e
	runs := make([]*run.Run, len(some))
	for i, src := range some {
		runs[i] = src.Run
	}
	m, err := run.Merge(e.fs, e.runsDir(), e.number(), k.config("merge", k.merging), runs)
	if errors.Is(err, run.ErrClosed) { // nobody in one of them lives any more
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
	for m.CatchUp() > stepItems {
	}
	into := &source{Run: m.Run, area: some[0].area, dirty: true}
	k.mu.Lock()
	defer k.mu.Unlock()
	m.CatchUp()
	e.cfg.tune.between("merged")
	gone, err := k.commit([]*source{into}, some, 0)
	if err != nil {
		if errors.Is(err, manifest.ErrFailed) { // it may name it
			return errors.Join(err, m.Run.Close())
		}
		return errors.Join(err, m.Run.Remove())
	}
	gone = append(gone, some...)
	e.mu.Lock()
	if m.CatchUp() > 0 {
		into.dirty = true
	}
	for i, src := range some {
		src.merged, src.nth, src.into = m, i, into
	}
	e.setRuns(e.runs.with([]*source{into}, gone))
	k.drew()
	e.mu.Unlock()
	k.counts.merges.Add(1)
	k.clear(gone)
	return nil
}

// spoiled notes which run could not be merged since it is damaged, so that others are.
func (k *keeper) spoiled(some []*source, err error) {
	var damage *disk.DamageError
	if !errors.As(err, &damage) {
		return
	}
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	for _, src := range some {
		src.bad = src.bad || run.Name(k.e.runsDir(), src.Number()) == damage.File
	}
}

// dropDead leaves out the runs in which nobody lives.
func (k *keeper) dropDead() error {
	e := k.e
	k.mu.Lock()
	defer k.mu.Unlock()
	var gone []*source
	err := e.space.spared(func() (err error) {
		gone, err = k.commit(nil, nil, 0)
		return err
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.setRuns(e.runs.with(nil, gone))
	k.drew()
	e.mu.Unlock()
	k.clear(gone)
	return nil
}

// anyDead reports whether there is a run in which nobody lives.
func (k *keeper) anyDead() bool {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	return slices.ContainsFunc(k.e.runs.all(), func(s *source) bool { return s.living() == 0 && s.dirty })
}
