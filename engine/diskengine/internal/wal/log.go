package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Log is an open log. Its methods may be called from many goroutines.
type Log struct {
	fs   vfs.FS
	dir  string
	cfg  Config
	seed uint32

	synced  atomic.Uint64 // a Pos: all before is durable
	written atomic.Uint64 // a Pos: all before is with the operating system

	wake     chan struct{} // the writer has something to do
	kick     chan struct{} // the preparer has
	ready    chan struct{} // the preparer has done something, or failed to
	failed   chan struct{} // closed: err is set
	stop     chan struct{} // closed: the preparer is to end
	writer   *writer
	writing  sync.WaitGroup
	keeping  sync.WaitGroup
	ended    chan struct{} // closed: closeErr is set
	closeErr error

	mu      sync.Mutex
	end     Pos       // of what was appended
	pending int       // bytes of it that are not durable
	cur     *buffer   // being filled; nil: none
	full    []*buffer // before it
	next    *flush    // of what is in the buffers
	busy    *flush    // of what is being written; nil: nothing
	idle    bool      // the writer waits for wake
	closed  bool
	err     error

	syncing bool          // busy is written, and being synced
	ahead   bool          // some of next is written
	early   chan struct{} // closed when that was tried; nil: nothing is about to

	live     []*segment // that were begun, in order
	spares   []*segment // that are next, in order
	used     []*segment // that are not needed
	released Pos        // all before is needed only by holds
	holds    []*Hold
	number   uint64        // of the next spare
	spareErr error         // why there are not enough spares
	noSpace  bool          // that is the reason
	writeErr error         // why the writer waits for space
	made     chan struct{} // closed when the preparer has made one, or failed to
}

// flush is all callers that wait for the same sync.
type flush struct {
	wrote chan struct{} // closed when it is written, if it is
	done  chan struct{} // closed when it is synced, or has failed
	end   Pos           // known once it is busy
	bytes int
	err   error
}

// over is closed when a flush is; nil, which never is, for no flush.
func (f *flush) over() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.done
}

func newFlush() *flush { return &flush{wrote: make(chan struct{}), done: make(chan struct{})} }

// Open opens the log in a directory that is there and to which no other process has access, and
// gives fn its entries from a position on: 0, or the end of an entry that was durable. An
// error of fn ends it and is returned. What is given to fn is durable when Open returns.
//
// What a crash cut off is dropped. What was durable and cannot be read is a *vfs.DamageError.
func Open(fs vfs.FS, dir string, cfg *Config, from Pos, fn func(Entry) error) (*Log, Found, error) {
	l := &Log{fs: fs, dir: dir, cfg: cfg.withDefaults(),
		wake: make(chan struct{}, 1), kick: make(chan struct{}, 1), ready: make(chan struct{}, 1),
		failed: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}), made: make(chan struct{}), next: newFlush()}
	l.seed = seed(l.cfg.ID)
	c, err := scan(fs, dir, l.cfg.ID)
	if err != nil {
		return nil, Found{}, fmt.Errorf("open the log: %w", err)
	}
	r, found, err := c.read(from, &l.cfg, fn)
	if err == nil {
		err = r.makeSure()
	}
	if err == nil && r.unread != nil {
		l.cfg.Logger.Warn("the disk cannot read what is behind the end of the log; it counts as cut off by a crash", "dir", dir, "error", r.unread)
	}
	if err == nil {
		err = l.adopt(c)
	}
	if err != nil {
		return nil, found, errors.Join(fmt.Errorf("open the log: %w", err), c.close())
	}
	l.end = found.End
	l.synced.Store(uint64(found.End))
	l.written.Store(uint64(found.End))
	l.Release(from)
	l.writer = &writer{l: l, pos: found.End, holder: r.cut.prev}
	if l.cfg.Still {
		return l, found, nil
	}
	l.writing.Add(1)
	go l.writer.run()
	l.keeping.Add(1)
	go l.keep()
	return l, found, nil
}

// makeSure makes durable what may not have been. What a failed sync dropped is still seen,
// and counts as written: so it is written again.
func (r *reading) makeSure() error {
	if len(r.begun) == 0 || r.torn == nil {
		return nil // an empty frame says that all was synced
	}
	s := r.begun[len(r.begun)-1]
	b := make([]byte, min(windowSize, r.off-r.unsure))
	for off := r.unsure; off < r.off; {
		n, err := s.file.ReadAt(b[:min(int64(len(b)), r.off-off)], off)
		if n == 0 {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if _, err := s.file.WriteAt(b[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	return s.file.Sync()
}

// adopt takes the segments of a chain, and sees that one is ready where the disk has room.
func (l *Log) adopt(c *chain) error {
	l.live, l.number = c.begun, c.last()+1
	for i, s := range l.live {
		if s.durable = true; i+1 < len(l.live) {
			s.filled = s.size
		}
	}
	for _, s := range c.others {
		if s.number == l.number {
			s.size = 0 // what copied the log may have left holes in it
			if err := l.reserve(s); err != nil && !vfs.IsFull(err) {
				return err
			}
			l.spares, l.number = append(l.spares, s), l.number+1
		} else {
			l.used = append(l.used, s)
		}
	}
	if len(l.spares) > 0 { // it may be that their names never were durable
		if err := l.fs.SyncDir(l.dir); err != nil {
			return err
		}
	}
	for len(l.spares) == 0 {
		if _, err := l.prepare(); vfs.IsFull(err) {
			l.noSpace, l.spareErr = true, err
			return nil
		} else if err != nil {
			return err
		}
		if l.err != nil {
			return l.err
		}
	}
	return nil
}

// Synced is up to where the log is durable.
func (l *Log) Synced() Pos { return Pos(l.synced.Load()) }

// End is the end of what was appended.
func (l *Log) End() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Failed is closed when the log stops at an error, which Err then returns.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err is the error at which the log stopped, wrapped in ErrStopped, or nil.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail stops the log for good. The preparer logs it: callers may hold locks, or have other work first.
func (l *Log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", ErrStopped, err)
		close(l.failed)
	}
}

// Wait waits until the log is durable up to a position that Append told. It returns
// nil whenever that is so. Otherwise ErrUnknown and the context's error, when that ends before,
// or ErrStopped.
func (l *Log) Wait(ctx context.Context, pos Pos) error {
	if pos <= l.Synced() {
		return nil
	}
	l.turn()
	f, err := l.flushOf(pos)
	if f == nil {
		return err
	}
	return f.wait(ctx)
}

// flushOf returns the flush that makes a position durable; nil without an error if that has
// been done, perhaps since the caller looked.
func (l *Log) flushOf(pos Pos) (*flush, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case pos <= l.Synced():
		return nil, nil
	case l.err != nil:
		return nil, l.err
	case pos > l.end:
		return nil, fmt.Errorf("position %d is beyond the end of the log, %d", pos, l.end)
	case l.busy != nil && pos <= l.busy.end:
		return l.busy, nil
	}
	return l.next, nil
}

func (f *flush) wait(ctx context.Context) error {
	if ctx.Done() == nil {
		<-f.done
		return f.err
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		select {
		case <-f.done:
			return f.err
		default:
		}
		return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

// Release says that nothing before a position is needed any more: the log is never opened from
// before it again. Segments that are before it are used again, or removed, once there is no Hold
// on them.
func (l *Log) Release(pos Pos) {
	l.mu.Lock()
	l.released = max(l.released, pos)
	pos = l.released
	for _, h := range l.holds {
		pos = min(pos, h.from)
	}
	n := 0
	for n+1 < len(l.live) && l.live[n+1].durable && l.live[n+1].base <= min(pos, l.Synced()) {
		n++
	}
	l.used = append(l.used, l.live[:n]...)
	l.live = append(l.live[:0:0], l.live[n:]...)
	l.mu.Unlock()
	signal(l.kick)
}

// Size is how many bytes the segments take up that hold entries since the last Release.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.live)) * l.cfg.SegmentBytes
}

// Taken is how many bytes all segments take up, those that are made ahead or wait to be used again too.
func (l *Log) Taken() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.live)+len(l.spares)+len(l.used)) * l.cfg.SegmentBytes
}

// Close makes durable what was appended and closes the log. It waits, and each call returns the same error.
func (l *Log) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if !first {
		<-l.ended
		return l.closeErr
	}
	signal(l.wake)
	l.rest()
	l.writing.Wait()
	close(l.stop)
	l.keeping.Wait()
	l.closeErr = l.Err()
	for _, b := range l.full { // where the log stopped before they were written
		b.give()
	}
	for _, list := range [][]*segment{l.live, l.spares, l.used} {
		for _, s := range list {
			l.closeErr = errors.Join(l.closeErr, s.file.Close())
		}
	}
	close(l.ended)
	return l.closeErr
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// after is time.After, with a timer that never fires for negative spans.
func after(d time.Duration) (<-chan time.Time, func() bool) {
	if d < 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(d)
	return t.C, t.Stop
}
