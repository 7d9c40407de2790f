package wal

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// writer writes and syncs, in a goroutine of its own.
type writer struct {
	l *Log

	mu       sync.Mutex // held while frames are written, not while they are synced
	seg      *segment   // being written; nil: none was begun yet
	prev     uint32     // checksum of the last frame in it, or of its header
	lastFull uint32     // checksum of the last frame that is not empty
	pos      Pos        // where the written part ends
	small    bool       // what is being written is at most fillMost
}

func (w *writer) run() {
	defer w.l.writing.Done()
	mark := time.NewTimer(markAfter)
	defer mark.Stop()
	last, marked := time.Now(), true
	for {
		// Let callers append first: it saves syncs.
		runtime.Gosched()
		f, bufs, end := w.l.take()
		switch {
		case f != nil:
			pos, err := w.flush(f, bufs)
			if err != nil {
				w.l.fail(err)
			}
			if w.l.done(f, bufs, pos) {
				return
			}
			if last = time.Now(); marked {
				marked = false
				mark.Reset(markAfter)
			}
			continue
		case end:
			w.finish(marked)
			return
		}
		select {
		case <-w.l.wake:
		case <-w.l.failed:
		case now := <-mark.C:
			if marked {
				break
			}
			if rest := markAfter - now.Sub(last); rest > 0 {
				mark.Reset(rest)
			} else if err := w.mark(); err != nil {
				w.l.fail(err)
			} else {
				marked = true
			}
		}
	}
}

// take returns the next flush and its buffers; nil: there is nothing to write. Then end says
// that the log is closed.
func (l *Log) take() (f *flush, bufs []*buffer, end bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		l.busy, l.next = l.next, newFlush() // no caller will wait for the new one
		return l.busy, nil, false
	}
	if l.cur == nil && len(l.full) == 0 && !l.ahead {
		l.idle = !l.closed
		return nil, nil, l.closed
	}
	bufs = l.full
	if l.cur != nil {
		bufs = append(bufs, l.cur)
	}
	l.full, l.cur, l.ahead = nil, nil, false
	l.busy, l.next = l.next, newFlush()
	l.busy.end, l.busy.bytes = l.end, l.pending
	return l.busy, bufs, false
}

// done wakes the callers that wait for a flush, and reports whether the log has stopped. If it
// has, done also wakes those that wait for the next flush.
func (l *Log) done(f *flush, bufs []*buffer, pos Pos) (stopped bool) {
	l.mu.Lock()
	if f.err = l.err; f.err == nil {
		l.synced.Store(uint64(pos))
		l.pending -= f.bytes
	}
	l.busy, l.syncing = nil, false
	next := l.next
	l.mu.Unlock()
	for _, b := range bufs {
		b.give()
	}
	close(f.done)
	for _, b := range bufs {
		b.free()
	}
	if f.err == nil {
		return false
	}
	if f != next {
		next.err = f.err
		close(next.done)
	}
	return true
}

// flush writes buffers, wakes the callers that wait only for that, and syncs. It returns the
// position up to which all is synced.
func (w *writer) flush(f *flush, bufs []*buffer) (Pos, error) {
	if w.l.Err() != nil {
		return 0, nil // the log has stopped
	}
	w.mu.Lock()
	err := w.frames(bufs)
	pos := w.pos // the sync does not cover what is written during it
	w.mu.Unlock()
	if err != nil {
		return 0, err
	}
	w.l.wrote(f, pos)
	return pos, w.sync()
}

// wrote wakes the callers that wait only for the write of a flush, which is about to be
// synced.
func (l *Log) wrote(f *flush, pos Pos) {
	l.mu.Lock()
	l.syncing = true
	l.written.Store(uint64(pos))
	l.mu.Unlock()
	close(f.wrote)
}

// frames writes buffers as frames. mu is held.
func (w *writer) frames(bufs []*buffer) error {
	w.small = len(bufs) == 1 && len(bufs[0].b) <= fillMost
	for _, buf := range bufs {
		stream := buf.b[frameSize:]
		for at, first := 0, 0; at < len(stream); {
			n, err := w.room(len(stream) - at)
			if err != nil {
				return err
			}
			next := nextEntry(stream, first, at+n)
			// The head goes before the piece, over bytes that are written already.
			b := buf.b[at : at+int(padded(n))]
			clear(b[frameSize+n:])
			if err := w.frame(b, n, min(first-at, n)); err != nil {
				return err
			}
			at, first = at+n, next
		}
	}
	return nil
}

// frame writes a frame. Its piece of n bytes is in b already.
func (w *writer) frame(b []byte, n, first int) error {
	f := frame{pos: w.pos, synced: w.l.Synced(), prev: w.prev, first: uint32(first)}
	f.encode(w.l.seed, b, n)
	if err := w.write(b); err != nil {
		return err
	}
	w.prev, w.pos = f.crc, w.pos+Pos(n)
	if n > 0 {
		w.lastFull = f.crc
	}
	return nil
}

// leastPiece is how many bytes must fit at the end of a segment for a piece to be split there.
const leastPiece = 4 << 10

// room returns how long the next piece can be, of left bytes. It begins a segment if there is
// no room.
func (w *writer) room(left int) (n int, err error) {
	left = min(left, maxPiece)
	if w.seg != nil {
		room := w.seg.room(w.l.cfg.SegmentBytes)
		if room >= min(left, leastPiece) {
			return min(left, room), nil
		}
	}
	if err := w.turn(); err != nil {
		return 0, err
	}
	return min(left, w.seg.room(w.l.cfg.SegmentBytes)), nil
}

// turn syncs all, and begins the next segment.
func (w *writer) turn() error {
	if w.seg != nil {
		if err := w.sync(); err != nil {
			return err
		}
		w.l.synced.Store(uint64(w.pos))
	}
	s, err := w.l.spare()
	if err != nil {
		return err
	}
	s.header = header{number: s.number, base: w.pos, salt: w.l.cfg.Salt(), prev: w.lastFull, store: w.l.cfg.ID}
	s.off, s.durable = 0, false
	b := s.header.encode(w.l.seed)
	w.l.mu.Lock()
	w.l.live = append(w.l.live, s)
	w.l.mu.Unlock()
	w.seg, w.prev = s, s.header.crc
	return w.write(b)
}

// write writes to the segment. If the disk is full, which happens where space cannot be
// reserved, it waits for space.
func (w *writer) write(b []byte) error {
	err := w.seg.write(b, w.small)
	if !vfs.IsFull(err) || w.l.cfg.RetryFor < 0 {
		return err
	}
	defer w.l.noteWrite(nil)
	for over := time.Now().Add(w.l.cfg.RetryFor); vfs.IsFull(err) && time.Now().Before(over); err = w.seg.write(b, w.small) {
		w.l.noteWrite(err)
		if w.l.cfg.Relieve() {
			continue
		}
		again := time.NewTimer(retryEvery)
		select {
		case <-again.C:
		case <-w.l.failed:
			again.Stop()
			return err
		}
	}
	return err
}

// noteWrite notes why the writer waits for space; nil: it does not.
func (l *Log) noteWrite(err error) {
	l.mu.Lock()
	was := l.writeErr
	l.writeErr = err
	l.mu.Unlock()
	if err != nil && was == nil {
		l.cfg.Logger.Warn("the disk is full: no space to write the log; calls that may be refused are refused", "dir", l.dir, "error", err)
	}
}

// spare waits for the next segment.
func (l *Log) spare() (*segment, error) {
	over, stop := after(l.cfg.RetryFor)
	defer stop()
	for {
		l.mu.Lock()
		err, why, made := l.err, l.spareErr, l.made
		if err == nil && len(l.spares) > 0 {
			s := l.spares[0]
			l.spares = append(l.spares[:0:0], l.spares[1:]...)
			l.mu.Unlock()
			signal(l.kick)
			return s, nil
		}
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if why != nil && l.cfg.RetryFor < 0 {
			return nil, fmt.Errorf("the next segment cannot be made: %w", why)
		}
		if l.cfg.Still {
			l.noteSpare(l.prepare())
			continue
		}
		select {
		case <-made:
		case <-l.failed:
		case <-over:
			if why == nil {
				why = errors.New("the file system does not answer")
			}
			return nil, fmt.Errorf("the next segment could not be made within %v: %w", l.cfg.RetryFor, why)
		}
	}
}

// sync makes durable what was written to the segment.
func (w *writer) sync() error {
	begun := time.Now()
	if err := w.seg.file.Sync(); err != nil {
		return err
	}
	w.l.cfg.Synced(time.Since(begun))
	if !w.seg.durable {
		w.l.mu.Lock()
		w.seg.durable = true
		w.l.mu.Unlock()
	}
	return nil
}

// mark writes an empty frame, which says that all before it is synced. If there is no room it
// writes none.
func (w *writer) mark() error {
	if w.seg.room(w.l.cfg.SegmentBytes) < 0 {
		return nil
	}
	return w.frame(make([]byte, frameSize), 0, 0)
}

// finish marks and syncs the end of a log that is being closed.
func (w *writer) finish(marked bool) {
	if w.seg == nil {
		return
	}
	var err error
	if !marked {
		err = w.mark()
	}
	if err == nil {
		err = w.sync()
	}
	if err != nil {
		w.l.fail(err)
	}
}

// room is how long the next piece may be; negative if not even an empty frame fits. It is a
// multiple of align.
func (s *segment) room(size int64) int { return int(size - s.off - frameSize) }

// fillAhead is how far ahead zeros are written where the file was never written. Syncs up to
// there need no new blocks, and take two thirds of the time. No zeros follow a flush of more
// than fillMost bytes: few syncs would gain, and all be written twice.
const (
	fillAhead = 512 << 10
	fillMost  = 96 << 10
)

var zeros [fillAhead]byte

// write writes at the end of a segment. If ahead, it writes zeros ahead too.
func (s *segment) write(b []byte, ahead bool) error {
	if _, err := s.file.WriteAt(b, s.off); err != nil {
		return err
	}
	if s.off += int64(len(b)); s.off <= s.filled {
		return nil
	}
	if !ahead {
		s.filled = s.off
		return nil
	}
	to := min(max(s.size, s.off), (s.off+fillAhead-1)/fillAhead*fillAhead)
	switch _, err := s.file.WriteAt(zeros[:to-s.off], s.off); {
	case err == nil:
		s.filled = to
	case !vfs.IsFull(err): // on a full disk go on: without zeros syncs only take longer
		return err
	}
	return nil
}
