package diskengine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest/scheduletest"
)

// TestAYearOfSchedules has processes end at calls that change something on the disk: half of
// them killed, half of them with the power.
func TestAYearOfSchedules(t *testing.T) {
	scheduletest.RunYear(t, func(*testing.T) scheduletest.Store { return &mortalStore{disk: disktest.New(nil)} })
}

// mortalStore is a scheduletest.Store on a simulated disk.
type mortalStore struct {
	disk  *disktest.Disk // of the process
	left  *disktest.Disk // what it leaves behind; nil while it lives
	e     *diskengine.Engine
	steps int
}

func (s *mortalStore) Open() (engine.Engine, error) {
	if s.left != nil {
		_ = s.e.Close() // its disk is off
		s.disk, s.left = s.left, nil
	}
	s.steps = 0
	s.disk.Hook(func(c disktest.Call) error {
		if c.Changes() && s.left == nil {
			if s.steps--; s.steps == 0 {
				s.Kill()
				return disktest.ErrOff
			}
		}
		return nil
	})
	var err error
	s.e, err = diskengine.OpenOn(s.disk, "data", &diskengine.Config{Logger: quiet, RetryFor: -1, MinFreeBytes: -1},
		diskengine.Tune{SegmentBytes: 64 << 10, MemtableBytes: 64 << 10, Still: true})
	return s.e, err
}

func (s *mortalStore) Kill() {
	if rand.IntN(2) == 0 {
		s.left = s.disk.Kill()
	} else {
		s.left = s.disk.Crash(disktest.Seeded(rand.Uint64()))
	}
	s.disk.Halt()
}

func (s *mortalStore) KillIn(steps int) { s.steps = steps }
func (s *mortalStore) Killed() bool     { return s.left != nil }

func (s *mortalStore) Called() {
	if !s.Killed() {
		s.e.Turn()
	}
}
