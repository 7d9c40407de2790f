package diskengine_test

import (
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/enginetest"
)

func TestConformanceOnRealDisk(t *testing.T) {
	t.Parallel()
	clock := enginetest.NewClock()
	h := harness(clock, func(t *testing.T) place {
		return place{t.TempDir(), diskengine.Config{Now: clock.Now, Logger: quiet, MemTableBytes: 1 << 20, CacheBytes: 1 << 20}}
	})
	h.Histories = 2
	enginetest.Run(t, h)
}
