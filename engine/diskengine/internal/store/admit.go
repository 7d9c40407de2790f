package store

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/callers"
)

// A push takes its bytes twice: in memory, and in the log until that is written. So pushes
// under way together have at most this part of Config.MemoryBytes; a larger one runs alone.
// They are let in in the order in which they come.
const enterPart = 4

// Enter waits until a push of so many bytes may run. The caller calls leave when it has ended.
func (st *Store) Enter(ctx context.Context, bytes int64) (leave func(), err error) {
	n := min(bytes, st.cfg.MemoryBytes/enterPart)
	if !st.pushing.TryAcquire(n) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(st.Life, stop)()
		if err := st.pushing.Acquire(ctx, n); err != nil {
			if st.Life.Err() != nil {
				return nil, callers.Closed("push")
			}
			return nil, behind(ctx, err)
		}
	}
	return func() { st.pushing.Release(n) }, nil
}

// Admit waits until there is room for a push of so many bytes: there is free space, and the
// log, flushes and merges keep up. The caller calls Compactor.Came once the bytes are in the
// log, or will not be.
func (st *Store) Admit(ctx context.Context, bytes int64) error {
	if err := st.hooks.Refused("push"); err != nil {
		return err
	}
	if err := st.Log.Admit(ctx); err != nil {
		return behind(ctx, err)
	}
	k := st.Compactor
	if k.admitFast(bytes) {
		return nil
	}
	waits := false
	for turn := (pushTurn{}); ; {
		room, rest, err := k.admitSlow(bytes, &turn)
		if err != nil || room == nil {
			return err
		}
		if !waits {
			waits = true
			k.Waiting.Add(1)
			defer k.Waiting.Add(-1)
			k.Wake() // there may be nothing sealed yet
		}
		timer := time.NewTimer(rest)
		select {
		case <-room:
		case <-timer.C:
		case <-ctx.Done():
			err = behind(ctx, ctx.Err())
		case <-st.Life.Done():
			err = wal.ErrClosed
		case <-st.Log.Failed():
			err = st.Log.Err()
		}
		if timer.Stop(); err != nil {
			k.giveBack(turn)
			return err
		}
	}
}

// pushTurn is when a slowed push is let in, and how long the next one waits after it.
type pushTurn struct {
	at   time.Time
	span time.Duration
}

// giveBack returns the turn of a push that has left, so that later ones do not wait for it.
func (k *Compactor) giveBack(t pushTurn) {
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	k.nextTurn = k.nextTurn.Add(-t.span)
}

// behind is the error of a push that waited to be admitted. If its context has ended, the
// error says what it waited for.
func behind(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil && (err == over || err == context.Cause(ctx)) {
		return &engine.Error{Op: "push", Err: over, Hint: behindHint}
	}
	return err
}

const behindHint = "nothing was pushed: the disk is behind with what was pushed before; push more slowly, allow more time, or see to the disk"

// How pushes are let in.
const (
	freely  = iota
	slowed  // one after the other
	stopped // not at all
)

// admitFast admits a push while pushes are not slowed, if it is small together with those on
// their way to the log.
func (k *Compactor) admitFast(bytes int64) bool {
	if k.pushes.Load() != freely {
		return false
	}
	if k.coming.Add(bytes) <= k.littleAhead() {
		return true
	}
	k.Came(bytes)
	return false
}

// admitSlow admits a push, or returns a channel that is closed when there is more room, and
// how long to wait at most before it looks again: until the push's turn, which it takes if
// pushes are slowed, or lookEvery. A push is admitted if room and err are nil.
func (k *Compactor) admitSlow(bytes int64, turn *pushTurn) (room <-chan struct{}, rest time.Duration, err error) {
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	level, err := k.assess()
	if refused := k.st.hooks.Refused("push"); refused != nil { // space has become short since it came
		err = refused
	}
	switch {
	case err != nil:
		return nil, 0, err
	case level > 1, k.overfills(bytes):
		return k.drawn, lookEvery, nil
	case !k.takes(bytes):
		k.makeRoom(bytes)
		return nil, 0, &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: NoSpaceHint}
	case level > 0:
		now := time.Now()
		if turn.at.IsZero() {
			*turn = k.turn(now, bytes, level)
		}
		if rest := turn.at.Sub(now); rest > 0 {
			return k.drawn, rest, nil
		}
	}
	k.coming.Add(bytes)
	return nil, 0, nil
}

// halfSlowed is how many bytes a second are let in at half the level.
const halfSlowed = 64 << 20

// turn takes a turn for a push of so many bytes. The higher the level, the more time between
// turns. So pushes become as slow as flushes and merges are. Store.Mu is held.
func (k *Compactor) turn(now time.Time, bytes int64, level float64) pushTurn {
	if k.nextTurn.Before(now) {
		k.nextTurn = now
	}
	level = min(level, 0.95)
	turn := pushTurn{k.nextTurn, time.Duration(float64(bytes) / halfSlowed * level / (1 - level) * float64(time.Second))}
	k.nextTurn = turn.at.Add(turn.span)
	return turn
}

// Came says that a push that was admitted has ended: its bytes are in the log, or will not be.
func (k *Compactor) Came(bytes int64) {
	k.coming.Add(-bytes)
	if k.pushes.Load() != stopped {
		return
	}
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	k.drew()
}

// drew wakes the pushes that wait for room. Store.Mu is held.
func (k *Compactor) drew() {
	_, _ = k.assess()
	close(k.drawn)
	k.drawn = make(chan struct{})
}

// mostTables is how many sstables of live messages there may be before pushes wait for merges.
const mostTables = 256

// assess returns how far flushes and merges are behind: above 0 pushes are slowed, above 1
// they wait. An error refuses pushes, since they would wait for long. Store.Mu is held.
func (k *Compactor) assess() (level float64, err error) {
	if k.st.cfg.Still { // nothing happens by itself
		return 0, nil
	}
	k.pushes.Store(stopped) // before coming is read, so that a push that ends meanwhile wakes waiting ones
	flushes := max((k.unwritten()-slowFrom)/(1-slowFrom), 2*k.ahead(k.coming.Load())-1)
	merges := 2*float64(len(k.st.Tables.Of[memtable.Live]))/mostTables - 1
	switch level = max(flushes, merges); {
	case level <= 0:
		k.nextTurn = time.Time{}
		k.pushes.Store(freely)
	case level <= 1:
		k.pushes.Store(slowed)
	case flushes > 1 && vfs.IsFull(k.failing), merges > 1 && k.cramped:
		err = &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: NoSpaceHint}
	case flushes > 1 && k.failing != nil:
		err = &engine.Error{Op: "push", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, k.failing),
			Hint: "what was pushed before cannot be written to an sstable; see to the disk"}
	}
	return level, err
}

// Parts of Config.mostUnwritten: a memtable is sealed at sealFrom by default, and pushes are
// slowed from slowFrom on.
const (
	sealFrom = 0.25
	slowFrom = 0.6
)

// unwritten is the memory of the memtables as a part of the most they may take, without what
// the flush under way has written. 0: there is nothing to write. Store.Mu is held.
func (k *Compactor) unwritten() float64 {
	taken, _ := k.st.Memtables.Memory()
	if len(k.Sealed) > 0 {
		taken -= k.Sealed[0].written()
	} else if !k.grown() {
		return 0
	}
	return float64(taken) / float64(k.st.cfg.mostUnwritten())
}

// overfills reports whether a large push has to wait until a flush has freed memory. That
// flush then runs without pauses. Store.Mu is held.
func (k *Compactor) overfills(bytes int64) bool {
	if bytes <= k.littleAhead() {
		return false
	}
	taken, _ := k.st.Memtables.Memory()
	k.urgent = (len(k.Sealed) > 0 || k.grown()) && taken+bytes > k.st.cfg.mostUnwritten()
	return k.urgent
}

// A flush needs room for the messages that are only in the log, before the log gives its
// segments back. So pushes are slowed by that backlog too: the log's space is bounded, and a
// flush has room even when the disk is almost full. Leases, and calls that end messages, wait
// for nothing.

// AheadSpans is how many spans the backlog may have before pushes wait: twice as many as the
// log has while a memtable rests (Compactor.rests).
const AheadSpans = 4

// backlog is how many bytes of the log are in no sstable yet. Records written again do not
// count: no flush makes them fewer. Store.Mu is held.
func (k *Compactor) backlog() int64 {
	return int64(uint64(k.st.Log.End())-k.st.Replayed) - k.st.said
}

// ahead is the backlog, with bytes that are to come, as a part of the most it may be: some
// spans, or half of the free space if that is less, but at least a segment. A merge may need
// the other half. Store.Mu is held.
func (k *Compactor) ahead(coming int64) float64 {
	t, n := &k.st.cfg, k.backlog()+coming
	if t.Ahead < 0 || t.Still { // nothing makes it smaller by itself
		return 0
	}
	most := int64(t.Ahead) * t.Span
	if room, ok := k.st.Space.room(n + k.st.said); ok {
		most = min(most, room/2)
	}
	return float64(n) / float64(max(most, t.Segment))
}

// takes reports whether the disk has room for a push of so many bytes: in the log, and in an
// sstable together with the backlog. Store.Mu is held.
func (k *Compactor) takes(bytes int64) bool {
	if bytes <= k.littleAhead() || k.st.cfg.Ahead < 0 || k.st.cfg.Still {
		return true
	}
	n := k.backlog() + k.coming.Load() + bytes
	room, ok := k.st.Space.room(n + k.st.said)
	return !ok || asTable(n) <= room
}

// asTable is how many bytes so many bytes of messages may take in an sstable, with its
// indexes.
func asTable(bytes int64) int64 { return bytes + bytes/8 }

// makeRoom has the backlog flushed if a push of so many bytes fits only afterwards. The
// backlog must be worth an sstable, and enough space must stay free for other pushes
// meanwhile. The push is refused all the same: its caller must try it again. Store.Mu is
// held.
func (k *Compactor) makeRoom(bytes int64) {
	st, n := k.st, k.backlog()
	if k.isWanted() || n <= max(k.littleAhead(), st.rewritten) {
		return
	}
	taken, _ := st.Memtables.Memory()
	table := asTable(min(n, taken)) // handled messages are not written
	n = k.coming.Load() + bytes
	if room, ok := st.Space.roomLater(n + st.rewritten); ok && asTable(n)+table <= room && st.Space.leaves(table) {
		k.wanted = uint64(st.Log.End())
		k.Wake()
	}
}

// isWanted reports whether a flush that makeRoom asked for is not done yet. Store.Mu is held.
func (k *Compactor) isWanted() bool { return k.wanted > k.st.Replayed }

// littleAhead is how many bytes may be pushed without a look at the backlog.
func (k *Compactor) littleAhead() int64 { return k.st.cfg.Span / 16 }
