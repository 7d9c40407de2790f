package wal

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// keep keeps spares ready until the log is closed or stops.
func (l *Log) keep() {
	defer l.keeping.Done()
	defer func() {
		l.tell()
		if err := l.Err(); err != nil {
			l.cfg.Logger.Error("the log stopped: the store takes no calls until it is opened again", "dir", l.dir, "error", err)
		}
	}()
	for {
		more, err := l.prepare()
		l.noteSpare(more, err)
		if more && err == nil || l.relieved(err) {
			continue
		}
		wait := retryEvery
		if err == nil {
			wait = -1
		}
		again, stop := after(wait)
		select {
		case <-l.kick:
		case <-again:
		case <-l.failed:
			stop()
			return
		case <-l.stop:
			stop()
			return
		}
		stop()
	}
}

// relieved reports whether Config.Relieve made space for a segment, if none is ahead and the
// disk is full.
func (l *Log) relieved(err error) bool {
	if !vfs.IsFull(err) {
		return false
	}
	l.mu.Lock()
	ahead := len(l.spares)
	l.mu.Unlock()
	return ahead == 0 && l.cfg.Relieve()
}

// noteSpare notes whether spares can be made. A full disk counts as full until all spares are
// there.
func (l *Log) noteSpare(more bool, err error) {
	l.mu.Lock()
	was := l.noSpace
	if err != nil || !more {
		l.spareErr, l.noSpace = err, vfs.IsFull(err)
	}
	isFull := l.noSpace
	l.mu.Unlock()
	l.tell()
	if isFull && !was {
		l.cfg.Logger.Warn("the disk is full: no space for a further segment of the log; calls that may be refused are refused", "dir", l.dir, "error", err)
	}
}

// tell wakes the callers that wait for a segment.
func (l *Log) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.made)
	l.made = make(chan struct{})
}

// prepare makes one segment ready, or removes one of too many. It reports whether there was
// something to do.
func (l *Log) prepare() (more bool, err error) {
	l.mu.Lock()
	number, spares := l.number, len(l.spares)
	var s *segment
	if len(l.used) > 0 {
		// A segment that already has the next name comes first: no other could get that name.
		s = l.used[max(0, slices.IndexFunc(l.used, func(u *segment) bool { return u.number == number }))]
	}
	l.mu.Unlock()
	switch {
	case s != nil && (spares >= l.cfg.Keep || spares >= l.cfg.Spares && l.cfg.Short()):
		l.drop(s)
		return true, nil
	case s != nil:
		return true, l.reuse(s, number)
	case spares < l.cfg.Spares && (spares == 0 || !l.cfg.Short()):
		return true, l.make(number)
	}
	return false, nil
}

// drop removes a segment that is not needed. If that fails it only takes up space until the
// log is opened again.
func (l *Log) drop(s *segment) {
	if err := errors.Join(s.file.Close(), l.fs.Remove(s.name)); err != nil {
		l.cfg.Logger.Warn("a segment of the log that is not needed could not be removed", "file", s.name, "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unuse(s)
}

func (l *Log) unuse(s *segment) {
	l.used = slices.DeleteFunc(slices.Clone(l.used), func(u *segment) bool { return u == s })
}

// reuse gives a segment that is not needed the next number. If that fails, and not because the
// disk is full, it removes the segment: the next one will be a new file.
func (l *Log) reuse(s *segment, number uint64) error {
	err := l.rename(s, number)
	if err == nil {
		err = l.reserve(s)
	}
	if vfs.IsFull(err) {
		return err
	}
	if err != nil {
		l.cfg.Logger.Info("a segment of the log cannot be used again and is removed", "file", s.name, "error", err)
		l.drop(s)
		return nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		l.fail(err)
		return err
	}
	l.add(s)
	return nil
}

func (l *Log) rename(s *segment, number uint64) error {
	name := segmentName(l.dir, number)
	if s.name == name {
		return nil
	}
	if err := l.fs.Rename(s.name, name); err != nil {
		return err
	}
	s.name, s.number = name, number
	return nil
}

// make makes a new segment.
func (l *Log) make(number uint64) error {
	s := &segment{name: segmentName(l.dir, number), number: number}
	var err error
	if s.file, err = l.fs.Create(s.name); errors.Is(err, fs.ErrExist) { // left as it could not be removed
		if err = l.fs.Remove(s.name); err == nil {
			s.file, err = l.fs.Create(s.name)
		}
	}
	if err != nil {
		return err
	}
	if err := l.reserve(s); err != nil {
		return errors.Join(err, s.file.Close(), l.fs.Remove(s.name))
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		l.fail(err)
		return errors.Join(err, s.file.Close())
	}
	l.add(s)
	return nil
}

// reserve reserves the space of a segment, if the file system can.
func (l *Log) reserve(s *segment) error {
	if s.size >= l.cfg.SegmentBytes {
		return nil
	}
	err := s.file.Preallocate(0, l.cfg.SegmentBytes)
	if err == nil {
		err = s.file.Sync() // here, so that the writer's first sync is short
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	s.size = l.cfg.SegmentBytes
	return nil
}

// add adds a segment to the spares.
func (l *Log) add(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unuse(s)
	l.spares = append(l.spares, s)
	l.number++
}
