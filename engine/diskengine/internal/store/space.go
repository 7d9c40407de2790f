package store

import (
	"errors"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// Space watches the free space of the disk, and keeps the ballast: a file that only takes up
// space. The ballast is removed when a flush or the log needs its space. From then on pushes
// are refused until it is back, while messages can still be settled.
type Space struct {
	st    *Store
	Tells bool         // the file system says how much is free
	Free  atomic.Int64 // free bytes when last measured
	total atomic.Int64 // those and what the log took then; 0: the log was not open yet
	Low   atomic.Bool  // free is less than the least
	out   atomic.Bool  // the ballast is not there, though it should be

	held atomic.Bool // the ballast is there

	measuring sync.Mutex // so that the latest measurement stays
	taking    sync.Mutex // one change of the ballast at a time
}

const BallastName = "BALLAST"

// openSpace looks at the disk for the first time, and makes the ballast if there is room.
func openSpace(st *Store) *Space {
	s := &Space{st: st}
	_, err := st.FS.Free(st.Dir)
	s.Tells = err == nil
	s.held.Store(s.found())
	s.look()
	return s
}

func (s *Space) ballast() string { return filepath.Join(s.st.Dir, BallastName) }

// found reports whether the ballast is there from before. It removes one that is too small.
func (s *Space) found() bool {
	f, err := s.st.FS.Open(s.ballast())
	if err != nil {
		return false
	}
	size, err := f.Size()
	is := err == nil && s.st.cfg.BallastBytes > 0 && size >= s.st.cfg.BallastBytes
	if is { // a program that copied the directory may have left holes in it
		err = f.Preallocate(0, size)
	}
	if err = errors.Join(err, f.Close()); is && err == nil {
		return true
	}
	_ = s.st.FS.Remove(s.ballast()) // if that fails no other is made
	return false
}

// IsShort reports whether pushes are refused.
func (s *Space) IsShort() bool { return s.Low.Load() || s.out.Load() }

// Least is the free space below which pushes are refused.
func (s *Space) Least() int64 { return max(0, s.st.cfg.MinFreeBytes) }

// look measures the free space, and makes the ballast if there is enough. It reports whether there was too
// little before and is enough now.
func (s *Space) look() (relieved bool) {
	was := s.IsShort()
	free, known := s.measure()
	if known {
		s.Low.Store(free < s.Least())
	}
	s.take(free, known)
	is := s.IsShort()
	if is != was {
		s.tell(is)
	}
	return was && !is
}

// measure asks for the free space.
func (s *Space) measure() (free int64, known bool) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	taken := int64(0)
	if s.st.Log != nil {
		taken = s.st.Log.Taken() // before Free, so that what it takes meanwhile is not counted twice
	}
	free, err := s.st.FS.Free(s.st.Dir)
	if err != nil {
		return 0, false
	}
	s.Free.Store(free)
	if taken > 0 {
		s.total.Store(min(free, math.MaxInt64/2) + taken)
	}
	return free, true
}

// tell logs that space is short, or no longer. Both are warnings: an operator who reads only
// warnings must see the end too.
func (s *Space) tell(short bool) {
	if short {
		s.st.Slog.Warn("tarry disk: too little space is free: pushes are refused; leasing, settling and cancelling go on", "dir", s.st.Dir, "free_bytes", s.Free.Load(), "min_free_bytes", s.Least())
	} else {
		s.st.Slog.Warn("tarry disk: there is space again: pushes are accepted", "dir", s.st.Dir, "free_bytes", s.Free.Load())
	}
}

// take makes the ballast, unless it is there. A ballast that was given up comes back only when
// there is room for two.
func (s *Space) take(free int64, known bool) {
	s.taking.Lock()
	defer s.taking.Unlock()
	size := s.st.cfg.BallastBytes
	if s.held.Load() || size <= 0 {
		return
	}
	room := size
	if s.out.Load() {
		room = 2 * size
	}
	if known && free < s.Least()+room {
		s.out.Store(true)
		return
	}
	err := s.make(size)
	s.measure() // the ballast has taken space
	s.held.Store(err == nil)
	s.out.Store(vfs.IsFull(err)) // a file system that cannot reserve space has no ballast
}

// make reserves the file of the ballast.
func (s *Space) make(size int64) error {
	f, err := s.st.FS.Create(s.ballast())
	if err != nil {
		return err
	}
	if err = errors.Join(f.Preallocate(0, size), f.Close()); err != nil {
		err = errors.Join(err, s.st.FS.Remove(s.ballast()))
	}
	return err
}

// giveUp removes the ballast, and reports whether that made room.
func (s *Space) giveUp() bool {
	s.taking.Lock()
	defer s.taking.Unlock()
	if !s.held.Load() || s.st.FS.Remove(s.ballast()) != nil {
		return false
	}
	s.held.Store(false)
	if !s.out.Swap(true) && !s.Low.Load() {
		s.tell(true)
	}
	return true
}

// spared runs do, which frees space in the end. If the disk is full, it gives up the ballast
// and runs do again.
func (s *Space) spared(do func() error) error {
	err := do()
	if vfs.IsFull(err) && s.giveUp() {
		err = do()
	}
	return err
}

// fits reports whether the background may write so many bytes. Work that reclaims more than it
// takes may use all the free space.
func (s *Space) fits(bytes int64, reclaims bool) bool {
	free, err := s.st.FS.Free(s.st.Dir)
	if reclaims {
		return err != nil || free >= bytes
	}
	return err != nil || free-bytes >= max(s.Least(), s.st.cfg.BallastBytes)
}

// has reports whether so many bytes were free a moment ago, beside what is kept free.
func (s *Space) has(bytes int64) bool {
	return !s.Tells || s.Free.Load() >= s.Least()+max(0, s.st.cfg.BallastBytes)+bytes
}

// room is how many bytes the log and a flush may take together, the ballast's with them. ok is
// false if that is not known. log is how many bytes the log needs to keep now: what it takes
// beside, as a backup holds it, is no room. Store.Mu is held.
func (s *Space) room(log int64) (bytes int64, ok bool) {
	bytes = s.total.Load()
	if !s.Tells || bytes == 0 {
		return 0, false
	}
	if s.held.Load() {
		bytes += s.st.cfg.BallastBytes
	}
	ahead := (1 + logSpares) * s.st.cfg.Segment                                        // one that was begun, and those made ahead
	return bytes - ahead - s.st.cfg.Segment - max(0, s.st.Log.Taken()-log-ahead), true // a segment is for other files
}

const NoSpaceHint = "free some space; messages can be leased, settled and cancelled meanwhile"

// Tight reports whether space is short, for pushes or for the log.
func (st *Store) Tight() bool { return st.Space.IsShort() || st.Log.Full() != nil }
