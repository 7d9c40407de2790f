package diskengine

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
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
			s.low.Store(s.look(e))
		}
	}
	if s.low.Load() || e.ballast.out.Load() {
		return engine.ErrNoSpace
	}
	return nil
}

// look reports whether too little space is free. When there is enough the ballast
// is taken again.
func (s *space) look(e *Engine) bool {
	usage, err := e.cfg.FS.GetDiskUsage(e.dir.path)
	least := uint64(max(0, e.cfg.MinFreeBytes))
	if err == nil && usage.AvailBytes < least {
		return true
	}
	if e.ballast.out.Load() && (err != nil || usage.AvailBytes >= least+2*uint64(e.ballast.size)) {
		if err := e.ballast.take(); err != nil && !vfs.IsNoSpaceError(err) {
			e.ballast.back() // a file system that cannot reserve space has none
		}
	}
	return false
}
