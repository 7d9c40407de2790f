package store

import (
	"context"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/internal/calls"
)

// A push takes its bytes twice: in memory, and in the log until that is written. So pushes
// under way together have at most this part of Config.MemoryBytes; a larger one runs alone.
// They run in the order in which they come.
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
				return nil, calls.Closed("push")
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
	if err := k.pause(ctx, k.first, nil); err != nil {
		return err
	}
	defer func() { k.first <- struct{}{} }()
	for {
		room, rest, err := k.admit(bytes)
		if err != nil || rest == 0 {
			return err
		}
		k.Wake() // there may be nothing sealed yet
		if err := k.pause(ctx, room, time.After(rest)); err != nil {
			return err
		}
	}
}

// pause waits until either channel is ready. It fails if the push has to give up.
func (k *Compactor) pause(ctx context.Context, room <-chan struct{}, over <-chan time.Time) error {
	k.Waiting.Add(1)
	defer k.Waiting.Add(-1)
	select {
	case <-room:
	case <-over:
	case <-ctx.Done():
		return behind(ctx, ctx.Err())
	case <-k.st.Life.Done():
		return wal.ErrClosed
	case <-k.st.Log.Failed():
		return k.st.Log.Err()
	}
	return nil
}

// behind is the error of a push that waited to be admitted. If its context has ended, the
// error says what it waited for.
func behind(ctx context.Context, err error) error {
	if over := ctx.Err(); over != nil && (err == over || err == context.Cause(ctx)) {
		return &engine.Error{Op: "push", Err: over, Hint: behindHint}
	}
	return err
}

func noSpace() error {
	return &engine.Error{Op: "push", Err: engine.ErrNoSpace, Hint: NoSpaceHint}
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
	if k.coming.Add(bytes) <= k.st.cfg.little() {
		return true
	}
	k.Came(bytes)
	return false
}

// admit admits a push, or returns how long it waits before it asks again, and a channel that
// is closed when there is more room; 0: it is admitted. It is called for one push at a time, in
// the order in which they come.
func (k *Compactor) admit(bytes int64) (room <-chan struct{}, rest time.Duration, err error) {
	k.st.Mu.Lock()
	defer k.st.Mu.Unlock()
	level, err := k.assess()
	if refused := k.st.hooks.Refused("push"); refused != nil { // space has become short since it came
		err = refused
	}
	now := time.Now()
	switch {
	case err != nil:
		return nil, 0, err
	case level > 1:
		return k.drawn, lookEvery, nil
	case !k.fits(bytes):
		return nil, 0, noSpace()
	case level > 0 && k.delayed.Sub(now) >= leastDelay:
		return k.drawn, k.delayed.Sub(now), nil
	case level > 0:
		if k.delayed.Before(now) {
			k.delayed = now
		}
		k.delayed = k.delayed.Add(delay(bytes, level))
	}
	k.coming.Add(bytes)
	return nil, 0, nil
}

const (
	halfSlowed = 64 << 20         // bytes a second that are let in at half the level
	leastDelay = time.Millisecond // shorter delays are added up
)

// delay is how long pushes wait after one of so many bytes. The higher the level, the longer:
// so pushes become as slow as flushes and merges are.
func delay(bytes int64, level float64) time.Duration {
	level = min(level, 0.95)
	return time.Duration(float64(bytes) / halfSlowed * level / (1 - level) * float64(time.Second))
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
		k.delayed = time.Time{}
		k.pushes.Store(freely)
	case level <= 1:
		k.pushes.Store(slowed)
	case merges > 1 && k.cramped:
		err = noSpace()
	case flushes > 1:
		err = k.stuck()
	}
	return level, err
}

// stuck is the error of a push that would wait for flushes that fail; nil: they do not. Store.Mu
// is held.
func (k *Compactor) stuck() error {
	switch {
	case vfs.IsFull(k.failing):
		return noSpace()
	case k.failing != nil:
		return &engine.Error{Op: "push", Err: fmt.Errorf("%w: %w", engine.ErrUnavailable, k.failing),
			Hint: "what was pushed before cannot be written to an sstable; see to the disk"}
	}
	return nil
}

// Parts of Store.mostUnwritten: a memtable is sealed at sealFrom by default, and pushes are
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
	return float64(taken) / float64(k.st.mostUnwritten())
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
func (k *Compactor) backlog() int64 { return k.kept() - k.st.said }

// kept is how many bytes of the log a replay would read. Store.Mu is held.
func (k *Compactor) kept() int64 { return int64(uint64(k.st.Log.End()) - k.st.Replayed) }

// ahead is the backlog, with bytes that are to come, as a part of the most it may be: some
// spans, or half of what is then free if that is less, but at least a segment. A merge may need
// the other half. Store.Mu is held.
func (k *Compactor) ahead(coming int64) float64 {
	c := &k.st.cfg
	if c.Ahead < 0 || c.Still { // nothing makes it smaller by itself
		return 0
	}
	most := int64(c.Ahead) * c.Span
	if room, ok := k.st.Space.room(k.kept()); ok {
		most = min(most, (room-k.st.said)/3)
	}
	return float64(k.backlog()+coming) / float64(max(most, c.Segment))
}

// fits reports whether the disk has room for a large push: in the log, and in an sstable
// together with the backlog. Store.Mu is held.
func (k *Compactor) fits(bytes int64) bool {
	c := &k.st.cfg
	room, ok := k.st.Space.room(k.kept())
	if bytes <= c.little() || c.Ahead < 0 || c.Still || !ok {
		return true
	}
	n := k.backlog() + k.coming.Load() + bytes
	return k.st.said+n+n+n/8 <= room // an sstable has indexes too
}

// little is how many bytes may be pushed without a look at the backlog.
func (c *Config) little() int64 { return c.Span / 16 }
