package logengine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk"
	"github.com/tarryhq/tarry/engine/logengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/logengine/internal/marks"
	"github.com/tarryhq/tarry/engine/logengine/internal/recent"
	"github.com/tarryhq/tarry/engine/logengine/internal/run"
	"github.com/tarryhq/tarry/engine/logengine/internal/wal"
)

// keeper does what is done in the background: it writes windows of recent messages to runs, merges
// runs, and says in the manifest what counts. One goroutine flushes, another one merges, so that a
// long merge holds up no flush; a third looks at the free space.
type keeper struct {
	e       *Engine
	flushes chore // there may be something to flush
	merges  chore // or to merge
	looks   chore // or to look at
	group   sync.WaitGroup
	tidied  time.Time // when tidy last looked; the flusher's
	counts  keeperCounts

	flushMu, mergeMu baton // one of each at a time, come whence it may

	mu     baton // one manifest at a time
	man    *manifest.Manifest
	pinned *manifest.State // that is being copied; nil: none is

	// Guarded by Engine.mu:
	sealed  []sealedWindow // that are still to be flushed, the oldest first
	drawn   chan struct{}  // closed when there is more room
	failing error          // of the last flush
	cramped bool           // there is no space for merges

	full atomic.Bool // pushes wait
}

// keeperCounts are what it has done.
type keeperCounts struct{ flushes, merges, failures atomic.Int64 }

// sealedWindow is a window of recent messages that was sealed.
type sealedWindow struct {
	*recent.Sealed
	replay wal.Pos // from where on the log is replayed once it is in runs
	told   bool    // behind that it has been said again what is in no run
}

func newKeeper(e *Engine, man *manifest.Manifest) *keeper {
	return &keeper{e: e, man: man, flushes: newChore(), merges: newChore(), looks: newChore(),
		flushMu: newBaton(), mergeMu: newBaton(), mu: newBaton(), drawn: make(chan struct{})}
}

func (k *keeper) start() {
	k.group.Go(func() { k.loop(k.flushes, k.flushAll) })
	k.group.Go(func() { k.loop(k.merges, k.merge) })
	k.group.Go(func() { k.loop(k.looks, k.look) })
	k.wake()
}

// wake has the keeper look whether there is something to flush.
func (k *keeper) wake() {
	signal(k.flushes.told)
	signal(k.looks.told)
}

// look looks at what others use up too.
func (k *keeper) look() error {
	if k.e.space.look() {
		signal(k.flushes.eased)
		signal(k.merges.eased)
	}
	return nil
}

// wait waits until all has ended; the engine's life is over by then.
func (k *keeper) wait() { k.group.Wait() }

// pace returns what is called between the slices of long work, with the bytes that were written. It
// ends that when the engine closes.
func (k *keeper) pace(where string, haste func() float64) func(int) error {
	return func(n int) error {
		k.e.cfg.tune.between(where)
		if rest := time.Duration(float64(n) / calm * (1 - haste()) * float64(time.Second)); rest > 0 {
			timer := time.NewTimer(rest)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-k.e.life.Done():
			}
		}
		return k.e.life.Err()
	}
}

// between is called between slices that write nothing.
func (k *keeper) between(where string) error {
	k.e.cfg.tune.between(where)
	return k.e.life.Err()
}

// calm is how many bytes a second are written in the background while there is no haste: the syncs
// of the log wait for what else the disk has to write.
const calm = 32 << 20

// flushing is how much haste there is to write a window, from 0 to 1, since the next one grows or
// the log is to be let go.
func (k *keeper) flushing() float64 {
	if k.e.tight() {
		return 1
	}
	taken, _ := k.memory()
	return within01(2 * (float64(taken)/float64(k.e.cfg.tune.window) - 1))
}

// merging is how much haste there is to merge, since runs are many.
func (k *keeper) merging() float64 {
	k.e.mu.Lock()
	runs := len(k.e.runs.of[recent.Live])
	k.e.mu.Unlock()
	fan := float64(k.e.cfg.tune.fanIn)
	return within01((float64(runs) - 3*fan) / (3 * fan))
}

func within01(x float64) float64 { return max(0, min(1, x)) }

// memory is what the recent messages take.
func (k *keeper) memory() (taken, spare int64) {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	return k.e.recent.Memory()
}

// config is that of a run which is written.
func (k *keeper) config(where string, haste func() float64) *run.Config {
	c := k.e.runConfig()
	c.Pace = k.pace(where, haste)
	return c
}

func (e *Engine) runsDir() string { return filepath.Join(e.dir, runsDir) }

// number returns one for a file.
func (e *Engine) number() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.nextFile
	e.nextFile++
	return n
}

// commit makes durable which runs count: those that do, with some more and without some others,
// and from where on the log is replayed; 0: as before. What has died in any of them by then is
// noted in marks. The runs without anybody alive are left out. It returns those and the files that
// nobody needs any more.
func (k *keeper) commit(more, less []*source, replay wal.Pos) (gone []*source, err error) {
	e := k.e
	e.mu.Lock()
	all := e.runs.with(more, less).all()
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
		if err != nil && number != 0 && !errors.Is(err, manifest.ErrFailed) { // which may name them
			err = errors.Join(err, k.sweepMarks())
		}
	}()
	if len(dirty) > 0 {
		number = e.number()
		runs := make([]*run.Run, len(dirty))
		for i, src := range dirty {
			runs[i] = src.Run
		}
		counts, err := marks.Write(e.fs, e.runsDir(), number, e.id, runs, k.pace("marks", k.flushing))
		if err != nil {
			return nil, err
		}
		for i, src := range dirty {
			alive[src] = counts[i]
		}
	}
	// A death must not be durable before its record is: a message that moved would be lost. Who
	// was found dead by now has his record once the step under way has ended, unless the log did
	// not take it.
	e.mu.Lock()
	end, failed := e.log.End(), e.failed()
	e.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if err := e.log.Wait(e.life, end); err != nil {
		return nil, err
	}
	was := k.man.State()
	s.Runs = nil
	if replay > 0 {
		s.Replay = uint64(replay)
	}
	for _, src := range all {
		r := manifest.Run{Number: src.Number(), Area: uint8(src.area), Entries: src.Len(), Alive: src.Len(), Bytes: uint64(src.Bytes()), Marks: src.marks}
		if old, ok := was.Run(src.Number()); ok {
			r.Alive = old.Alive
		}
		if n, ok := alive[src]; ok {
			if r.Alive, r.Marks = n, number; n == 0 {
				gone = append(gone, src)
				continue
			}
		}
		s.Runs = append(s.Runs, r)
	}
	e.mu.Lock()
	s.NextFile = e.nextFile
	e.mu.Unlock()
	if err := k.man.Write(s); err != nil {
		return nil, err
	}
	for src := range alive {
		src.marks = number
	}
	return gone, nil
}

// clear removes files that the manifest in force does not name: runs that were left behind, and
// marks. What cannot be removed only takes up space, until the store is opened again.
func (k *keeper) clear(gone []*source) {
	var errs []error
	for _, src := range gone {
		errs = append(errs, src.Remove())
	}
	errs = append(errs, k.sweepMarks())
	if err := errors.Join(errs...); err != nil {
		k.e.slog.Warn("tarry disk: files that nobody needs could not be removed; they are when the store is opened again", "dir", k.e.dir, "error", err)
	}
}

// sweepMarks removes marks that no manifest names that anybody needs.
func (k *keeper) sweepMarks() error {
	s := k.man.State()
	return marks.Sweep(k.e.fs, k.e.runsDir(), func(n uint64) bool { return s.Names(n) || k.pinned != nil && k.pinned.Names(n) })
}

// sweep removes the files in the directory of runs that do not count.
func (e *Engine) sweep(s *manifest.State) error {
	return errors.Join(run.Sweep(e.fs, e.runsDir(), s.Names), marks.Sweep(e.fs, e.runsDir(), s.Names))
}

// readMarks reads who has died in runs that were just opened.
func (e *Engine) readMarks(all []*source) error {
	by := make(map[uint64][]*run.Run)
	for _, src := range all {
		if src.marks != 0 {
			by[src.marks] = append(by[src.marks], src.Run)
		}
	}
	numbers := make([]uint64, 0, len(by))
	for n := range by {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if err := marks.Restore(e.fs, e.runsDir(), n, e.id, by[n]); err != nil {
			return err
		}
	}
	return nil
}

// admit is what pushes wait for: space, a log that follows, and windows and runs that are not too
// many.
func (e *Engine) admit(ctx context.Context) error {
	if err := e.refused("push"); err != nil {
		return err
	}
	if err := e.log.Admit(ctx); err != nil {
		return err
	}
	for e.keeper.full.Load() {
		e.mu.Lock()
		wait := e.keeper.drawn
		crowded, err := e.keeper.crowded()
		e.mu.Unlock()
		switch {
		case !crowded:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.life.Done():
			return wal.ErrClosed
		case <-e.log.Failed():
			return e.log.Err()
		}
	}
	return nil
}

// crowded says that flushes or merges are so far behind that pushes wait, and why that would take
// long; nil: they follow. It notes it for those who have no lock. Engine.mu is held.
func (k *keeper) crowded() (is bool, err error) {
	taken, _ := k.e.recent.Memory()
	windows := len(k.sealed) > 0 && taken > k.e.cfg.tune.window/2*5
	runs := len(k.e.runs.of[recent.Live]) > mostRuns
	k.full.Store(windows || runs)
	switch {
	case windows && disk.IsFull(k.failing), runs && k.cramped:
		err = &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: noSpaceHint}
	case windows && k.failing != nil:
		err = &engine.Error{Op: "push", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, k.failing),
			Hint: "what was pushed before cannot be written to a run; see to the disk"}
	}
	return windows || runs, err
}

// mostRuns is how many runs of messages that live there are before pushes wait for merges.
const mostRuns = 256

// drew lets those in who wait for room. Engine.mu is held.
func (k *keeper) drew() {
	_, _ = k.crowded()
	close(k.drawn)
	k.drawn = make(chan struct{})
}
