package diskengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestConformanceOnRealDisk runs what writes most, or opens again; TestConformance runs
// all, in memory.
func TestConformanceOnRealDisk(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	h := harness(clock, func(t *testing.T) place {
		return place{t.TempDir(), diskengine.Config{Now: clock.Now, Logger: quiet, MemTableBytes: 1 << 20, CacheBytes: 1 << 20}}
	})
	h.Histories = 2
	h.Parts = []string{"Push", "AtomicPush", "Settle", "Cancel", "Remember", "Purge", "Settings", "Close", "Reopen", "Race", "Cut", "Many", "History"}
	enginetest.Run(t, h)
}
