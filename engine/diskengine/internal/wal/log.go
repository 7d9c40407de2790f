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

// Log is an open log. Many goroutines may call its methods.
type Log struct {
	fs   vfs.FS
	dir  string
	cfg  Config
	seed uint32

	synced  atomic.Uint64 // a Pos: all before is durable
	written atomic.Uint64 // a Pos: all before is with the operating system

	wake     chan struct{} // the writer has something to do
	kick     chan struct{} // the preparer has something to do
	failed   chan struct{} // closed: err is set
	stop     chan struct{} // closed: the preparer has to end
	writer   *writer
	writing  sync.WaitGroup
	keeping  sync.WaitGroup
	ended    chan struct{} // closed: closeErr is set
	closeErr error

	mu      sync.Mutex
	end     Pos       // where the last entry ends
	pending int       // bytes that are not durable
	cur     *buffer   // being filled; nil: none
	full    []*buffer // the buffers before cur
	next    *flush    // of the buffers
	busy    *flush    // under way; nil: none
	idle    bool      // the writer waits for wake
	closed  bool
	err     error

	syncing bool          // busy is written, and being synced
	ahead   bool          // some of next is written
	early   chan struct{} // closed when a write ahead was tried; nil: none is under way

	live     []*segment // begun, in order
	spares   []*segment // made ahead, in order
	used     []*segment // no longer needed
	released Pos        // only holds need anything before this
	holds    []*Hold
	number   uint64        // of the next spare
	spareErr error         // why there are not enough spares
	noSpace  bool          // spareErr says that the disk is full
	writeErr error         // why the writer waits for space
	made     chan struct{} // closed when the preparer has made a spare, or failed to
}

// flush is one write and sync, which any number of callers wait for.
type flush struct {
	wrote chan struct{} // closed when it is written; never if that fails
	done  chan struct{} // closed when it is synced, or has failed
	end   Pos           // known once it is under way
	bytes int
	err   error
}

// over is closed when a flush is done. For a nil flush it is nil, and never closed.
func (f *flush) over() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.done
}

func newFlush() *flush { return &flush{wrote: make(chan struct{}), done: make(chan struct{})} }

// Open opens the log in a directory, which must be there and which no other process uses. It
// gives fn the entries from a position on: 0, or the end of a durable entry. An error of fn
// ends Open and is returned. All that fn got is durable when Open returns.
//
// What a crash cut off is dropped. If something durable cannot be read, Open returns a
// *vfs.DamageError.
func Open(fs vfs.FS, dir string, cfg *Config, from Pos, fn func(Entry) error) (*Log, Found, error) {
	l := &Log{fs: fs, dir: dir, cfg: cfg.withDefaults(),
		wake: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		failed: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}), made: make(chan struct{}), next: newFlush()}
	l.seed = seed(l.cfg.ID)
	c, err := scan(fs, dir, l.cfg.ID)
	if err != nil {
		return nil, Found{}, fmt.Errorf("open the log: %w", err)
	}
	r := c.reading(from, &l.cfg, fn)
	found, err := r.all()
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
	l.writer = &writer{l: l, pos: found.End, lastFull: r.cut.prev}
	if l.cfg.Still {
		return l, found, nil
	}
	l.writing.Add(1)
	go l.writer.run()
	l.keeping.Add(1)
	go l.keep()
	return l, found, nil
}

// makeSure makes durable the end of the log, which may not have been. A read may still return
// bytes that a failed sync dropped, and a sync alone would not write them. So they are written
// again.
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

// adopt takes over the segments of a chain, and makes sure that one is ready if the disk has
// room.
func (l *Log) adopt(c *chain) error {
	l.live, l.number = c.begun, c.last()+1
	for i, s := range l.live {
		if s.durable = true; i+1 < len(l.live) {
			s.filled = s.size
		}
	}
	for _, s := range c.others {
		if s.number == l.number {
			s.size = 0 // reserve it again: a program that copied the log may have left holes in it
			if err := l.reserve(s); err != nil && !vfs.IsFull(err) {
				return err
			}
			l.spares, l.number = append(l.spares, s), l.number+1
		} else {
			l.used = append(l.used, s)
		}
	}
	if len(l.spares) > 0 { // their names may not be durable yet
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

// End is where the last entry ends that was appended.
func (l *Log) End() Pos {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// Failed is closed when the log stops at an error, which Err then returns.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Err is the error at which the log stopped, with ErrStopped; nil: it has not.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail stops the log for good. The preparer logs that, as callers may hold locks or be busy.
func (l *Log) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("%w: %w", ErrStopped, err)
		close(l.failed)
	}
}

// Wait waits until the log is durable up to a position that Append returned, and returns nil
// then. If the context ends first it returns ErrUnknown with the context's error. If the log
// stops it returns ErrStopped.
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

// flushOf returns the flush that makes a position durable. It returns nil without an error if
// the position is durable already, perhaps since the caller looked.
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

// Release says that nothing before a position is needed any more: the log will never be opened
// from before it again. Segments before it are used again, or removed, once there is no Hold
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

// Size is how many bytes the segments take that have entries since the last Release.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.live)) * l.cfg.SegmentBytes
}

// Taken is how many bytes all segments take, with those made ahead and those waiting to be
// used again.
func (l *Log) Taken() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.live)+len(l.spares)+len(l.used)) * l.cfg.SegmentBytes
}

// Close makes all entries durable and closes the log. It waits for that; each call returns the
// same error.
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
	for _, b := range l.full { // there are some if the log stopped before they were written
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

// after returns the channel of a timer and its Stop. For a negative d it never fires.
func after(d time.Duration) (<-chan time.Time, func() bool) {
	if d < 0 {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(d)
	return t.C, t.Stop
}
