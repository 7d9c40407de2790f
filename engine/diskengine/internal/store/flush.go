package store

import (
	"errors"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/sstable"
)

// FlushAll flushes, and notes the error for pushes that wait.
func (k *Compactor) FlushAll() error {
	err := k.Flush()
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	k.failing = err
	return err
}

// Flush seals the memtable if it has grown, and writes sealed memtables to sstables.
func (k *Compactor) Flush() error {
	k.FlushMu.Lock()
	defer k.FlushMu.Unlock()
	if err := k.st.hooks.ForgetIdle(); err != nil {
		return err
	}
	k.trimLoose()
	for {
		w := k.Next(false)
		if w == nil {
			return nil
		}
		if err := k.st.Space.spared(func() error { return k.FlushTable(w) }); err != nil {
			return err
		}
		Signal(k.Merges.Told)
	}
}

// trimLoose frees the memory of removed long values. Moving a message with a long value again
// and again takes memory but hardly any log, so no memtable is sealed for it. Only the flusher
// may call it, and only while it holds no such value.
func (k *Compactor) trimLoose() {
	for k.st.Memtables.Loose() > 0 {
		k.st.Memtables.Trim()
	}
}

// mostLoose is the part of a memtable, 1/mostLoose, that may be loose before the compactor
// looks.
const mostLoose = 16

// Next returns the memtable to be flushed next; nil: there is none, or it rests. If none is
// sealed, it seals one that has grown, or any if must.
func (k *Compactor) Next(must bool) *sealedTable {
	st := k.st
	st.Mu.Lock()
	defer st.Mu.Unlock()
	if len(k.Sealed) == 0 && !must && !k.grown() {
		return nil
	}
	if len(k.Sealed) == 0 {
		k.Seal()
	}
	w := k.Sealed[0]
	if !must && k.rests(w) {
		return nil
	}
	k.join(w)
	return w
}

// join has further sealed memtables flushed together with the first, so that there are fewer
// sstables to look into and to merge. All their memory is needed until then: so they take at
// most joinPart of it. Store.Mu is held.
func (k *Compactor) join(w *sealedTable) {
	for len(k.Sealed) > 1 && !w.told {
		o := k.Sealed[1]
		if float64(w.memory+o.memory) > joinPart*float64(k.st.cfg.MemoryBytes) || k.rests(o) {
			return
		}
		w.Join(o.Sealed)
		w.replay, w.memory, w.all = o.replay, w.memory+o.memory, w.all+o.all
		k.Sealed = append(k.Sealed[:1:1], k.Sealed[2:]...)
	}
}

const joinPart = 0.4

// grown reports whether the memtable or the log has grown so much that it is time to seal. If
// space is short the log gets no more than a segment, unless a flush would write as much again
// as came since the last seal: then it would gain nothing. Store.Mu is held.
func (k *Compactor) grown() bool {
	st := k.st
	taken, _ := st.Memtables.Memory()
	came := uint64(st.Log.End()) - st.sealedAt
	return k.hasMemtable() || came >= uint64(st.span(taken)) ||
		st.Tight() && st.Log.Size() > st.cfg.Segment && came > uint64(st.rewritten) || k.ahead(0) > 1
}

// hasMemtable reports whether the active memtable takes enough memory to be sealed. Store.Mu
// is held.
func (k *Compactor) hasMemtable() bool {
	return k.unsealed() >= k.st.cfg.Memtable && k.st.Memtables.Unsealed() > 0
}

// unsealed is about how many bytes of memory the active memtable takes. Store.Mu is held.
func (k *Compactor) unsealed() int64 {
	taken, _ := k.st.Memtables.Memory()
	for _, w := range k.Sealed {
		taken -= w.memory
	}
	return max(0, taken)
}

// rests reports whether a sealed memtable is not to be written yet: half of its messages or more
// are due within a minute of the seal, and need not be written once they are handled. It rests
// no longer than that, and not if there is no memory for another memtable, if space is short, or
// if the log has outgrown span by more than about twice what the memtables take.
// Store.Mu is held.
func (k *Compactor) rests(w *sealedTable) bool {
	st := k.st
	since := time.Since(w.at)
	if w.told || w.Len() == 0 || since >= soon || st.Tight() || k.ahead(0) > 1 {
		return false
	}
	if due, all := w.DueBefore(st.cfg.Now().Add(soon-since).UnixMilli(), soonQueues); 2*due < all {
		return false
	}
	taken, _ := st.Memtables.Memory()
	most := st.cfg.Span
	return k.unwritten() < slowFrom && st.Space.has(restSpans*most) &&
		int64(uint64(st.Log.End())-st.Replayed) < st.span(taken)+max(most/4, min(most, 2*taken))
}

// soon is how soon messages must be due for their memtable to rest, and for how long it does.
const soon = time.Minute

// restSpans is how many spans of the log must fit on the disk for a memtable to rest.
const restSpans = 16

// soonQueues is how many queues of a memtable are counted for that, so that the lock is not
// held for long.
const soonQueues = 64

// span is how much the log may grow before it is time to seal: eight times what a flush would
// write, which is messages that wait and records written again. It is at least a quarter of
// tuning.span, and at most all of it. So flushes write little beside the log, and the log
// takes no more space than that needs: a new segment is written twice. Store.Mu is held.
func (st *Store) span(taken int64) int64 {
	const times = 8
	most := st.cfg.Span
	return max(most/4, min(most, times*(taken+st.rewritten)))
}

// Seal seals the active memtable and begins a new one. Store.Mu is held.
func (k *Compactor) Seal() {
	st := k.st
	end := st.Log.End()
	st.sealedAt = uint64(end)
	w := &sealedTable{replay: end, at: time.Now(), memory: k.unsealed(), all: st.Memtables.Unsealed()}
	w.Sealed = st.Memtables.Seal()
	k.Sealed = append(k.Sealed, w)
}

// FlushTable writes a memtable to sstables. If it fails the memtable stays as it was.
func (k *Compactor) FlushTable(w *sealedTable) (err error) {
	st := k.st
	k.mu.Lock()
	defer k.mu.Unlock()
	if !w.told { // only at the first try, so that the log grows no more than it must
		st.Mu.Lock()
		st.Rewriting = 0
		st.Mu.Unlock()
		if err := st.hooks.Rewrite(); err != nil {
			return err
		}
		w.told = true
		st.Mu.Lock()
		st.rewritten = st.Rewriting // not what the log grew by: others have pushed meanwhile
		st.said += st.rewritten
		st.sealedAt += uint64(st.rewritten) // what was written again is no reason to seal again
		st.Mu.Unlock()
	}
	var made []*Source
	counts := false // the manifest names them: it cannot fail any more
	defer func() {
		if err == nil || counts {
			return
		}
		for _, src := range made {
			if errors.Is(err, manifest.ErrFailed) { // it may name them
				err = errors.Join(err, src.Close())
			} else {
				err = errors.Join(err, src.Remove())
			}
		}
		st.Mu.Lock()
		defer st.Mu.Unlock()
		w.Again()
		w.passed = 0
	}()
	for a := range memtable.Areas {
		src, err := k.write(w, a)
		if err != nil {
			return err
		}
		if src != nil {
			made = append(made, src)
		}
	}
	gone, err := k.commit(made, nil, w.replay)
	if err != nil {
		return err
	}
	st.cfg.Between("install")
	st.Space.measure() // pushes that are admitted now count on it
	k.install(w, made, gone)
	counts = true
	st.Log.Release(w.replay)
	for st.Memtables.Trim() {
	}
	k.Counts.Flushes.Add(1)
	k.clear(gone)
	return nil
}

// write writes an area of a memtable to an sstable; nil: the area is empty.
func (k *Compactor) write(w *sealedTable, a memtable.Area) (_ *Source, err error) {
	st := k.st
	var out *sstable.Writer
	defer func() {
		if out != nil && err != nil {
			err = errors.Join(err, out.Abort())
		}
	}()
	var some []passed
	var room []byte
	n := 0
	for most := passFirst; ; most = min(2*most, StepItems, max(1, most*passBytes/max(1, len(room)))) {
		some, room = some[:0], room[:0]
		st.Mu.Lock()
		k.wrote(w, n)
		n = w.Pass(a, most, func(x memtable.Entry) {
			p := passed{Place: sstable.Place{Queue: x.Queue, At: x.At, ID: x.ID}, from: len(room), key: len(x.Key)}
			if len(x.Value) > memtable.Long { // it stays where it is until Trim
				p.long = x.Value
				room = record.AppendKeyed(room, x.Key, nil)
			} else {
				room = record.AppendKeyed(room, x.Key, x.Value)
			}
			p.to = len(room)
			some = append(some, p)
		})
		st.Mu.Unlock()
		if n == 0 {
			break
		}
		if out == nil {
			c := k.config("flush", calmFlush, k.flushing)
			c.Hasty = func() bool { return k.flushing() > packs } // a merge packs it
			if out, err = sstable.Create(st.FS, st.TablesDir(), st.number(), c); err != nil {
				return nil, err
			}
		}
		for _, p := range some {
			value := room[p.from:p.to]
			var key sstable.Key
			if p.key > 0 {
				b, _, err := record.ParseKeyed(value)
				if err != nil {
					return nil, err
				}
				key = st.Secret.Key(p.Queue, string(b))
			}
			if err := out.Add(p.Place, key, value, p.long); err != nil {
				return nil, err
			}
		}
		k.trimLoose()
		if err := k.Between("pass"); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return nil, nil
	}
	r, err := out.Finish()
	if err != nil {
		return nil, err
	}
	return &Source{Table: r, Area: a}, nil
}

// wrote notes that n more entries of a memtable were given to an sstable. It also seals the
// active memtable if that has grown, so that none gets large meanwhile. Store.Mu is held.
func (k *Compactor) wrote(w *sealedTable, n int) {
	w.passed += n
	if len(k.Sealed) < mostSealed && k.hasMemtable() {
		k.Seal()
	}
	if k.pushes.Load() == stopped {
		k.drew()
	}
}

// mostSealed is the most sealed memtables: each look-up goes through all of them.
const mostSealed = 5

// The first pass copies passFirst entries, later ones as many as have about passBytes bytes.
const (
	passFirst = 1
	passBytes = StepBytes
)

// passed is an entry that was copied out of a memtable.
type passed struct {
	sstable.Place
	from, to int    // where its bytes are in the pass
	long     []byte // the long value that follows them; nil: none
	key      int    // bytes of the key
}

// install replaces a memtable with its sstables.
func (k *Compactor) install(w *sealedTable, made, gone []*Source) {
	st := k.st
	kill := func() (n int) {
		for _, src := range made {
			for _, pos := range w.Left(src.Area) {
				Spot{src, pos}.Kill()
				n++
			}
		}
		return n
	}
	for n := StepItems; n >= StepItems; { // most of them in slices, so that the lock is not held for long
		st.Mu.Lock()
		n = kill()
		st.Mu.Unlock()
		st.cfg.Between("installing")
	}
	st.Mu.Lock()
	defer st.Mu.Unlock()
	kill()
	for _, src := range made {
		src.since = st.Tables.Latest + 1
	}
	st.setTables(st.Tables.with(made, gone))
	st.Replayed, st.said = uint64(w.replay), st.rewritten
	st.Epoch++
	w.Drop()
	k.Sealed = append(k.Sealed[:0:0], k.Sealed[1:]...)
	k.drew()
}
