package diskengine

import (
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry/engine"
)

const noSpaceHint = "free some space; leasing, settling and cancelling go on meanwhile"

// spaceEvery is how long a look at the free space counts.
const spaceEvery = 100 * time.Millisecond

// space watches the free space of the disk.
type space struct {
	every  time.Duration
	looked atomic.Int64 // by the engine's clock, in milliseconds; 0: never
	low    atomic.Bool
}

// check returns engine.ErrNoSpace when the disk is as good as full. A file system
// that cannot tell is never full.
func (s *space) check(e *Engine, now clock) error {
	looked := s.looked.Load()
	if since := now.ms - looked; looked == 0 || since >= s.every.Milliseconds() || since < 0 {
		if s.looked.CompareAndSwap(looked, now.ms) {
			usage, err := e.cfg.FS.GetDiskUsage(e.dir.path)
			s.low.Store(err == nil && e.cfg.MinFreeBytes > 0 && usage.AvailBytes < uint64(e.cfg.MinFreeBytes))
		}
	}
	if s.low.Load() {
		return engine.ErrNoSpace
	}
	return nil
}
