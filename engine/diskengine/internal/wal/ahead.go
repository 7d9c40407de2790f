package wal

import (
	"context"
	"fmt"
)

// WaitWritten waits until the log is written up to a position that Append returned: written
// entries outlive this process, but not a loss of power. It returns as Wait does. It does not
// wait for a sync under way: the next entries are written beside it.
func (l *Log) WaitWritten(ctx context.Context, pos Pos) error {
	l.turn()
	// A write ahead that has begun already may miss the position; the next one has it, if any
	// can.
	for tries := 2; pos > Pos(l.written.Load()); tries-- {
		f, err := l.flushOf(pos)
		if f == nil {
			return err
		}
		var early <-chan struct{}
		if tries > 0 {
			early = l.hurry(pos)
		}
		select {
		case <-f.wrote:
			return nil
		case <-f.done: // it may have been written all the same
			return f.err
		case <-early:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
		}
	}
	return nil
}

// hurry has the buffers written beside the sync under way, and returns a channel that is
// closed when that was tried; nil: no sync is under way, or it covers the position.
func (l *Log) hurry(pos Pos) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.syncing || l.err != nil || pos <= l.busy.end {
		return nil
	}
	if l.early == nil {
		l.early = make(chan struct{})
		l.writing.Go(l.writeAhead) // the writer is counted too, so nothing has waited for the count to be 0
	}
	return l.early
}

// writeAhead writes the buffers, for the next flush to sync.
func (l *Log) writeAhead() {
	w := l.writer
	w.mu.Lock()
	if bufs := l.takeAhead(); len(bufs) > 0 {
		if err := w.frames(bufs); err != nil {
			l.fail(err)
		} else {
			l.written.Store(uint64(w.pos))
		}
		for _, b := range bufs {
			b.give()
			b.free()
		}
	}
	w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.early)
	l.early = nil
}

// takeAhead returns the buffers that may be written now: all of them, or none if they would
// need the next segment, which must not be begun before all is synced. The writer's mu is
// held.
func (l *Log) takeAhead() []*buffer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.syncing || l.err != nil { // the writer takes it
		return nil
	}
	bufs := l.full
	if l.cur != nil {
		bufs = append(bufs, l.cur)
	}
	room := l.writer.seg.room(l.cfg.SegmentBytes)
	for _, b := range bufs {
		n := len(b.b) - frameSize
		if room -= n + (n/maxPiece+1)*(frameSize+align); room < 0 {
			return nil
		}
	}
	l.full, l.cur, l.ahead = nil, nil, len(bufs) > 0
	return bufs
}
