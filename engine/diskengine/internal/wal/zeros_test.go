package wal

import (
	"sync/atomic"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestZerosAreWrittenAheadOfShortSyncs: where syncs write little the log writes zeros ahead, in
// segments that were never written; where they write much it does not, and no byte twice.
func TestZerosAreWrittenAheadOfShortSyncs(t *testing.T) {
	for _, c := range []struct {
		size  int
		ahead bool
	}{{2 << 10, true}, {fillMost / 2, true}, {2 * fillMost, false}, {fillAhead / 2, false}} {
		d, cfg := newDisk(t), small()
		cfg.SegmentBytes = 1 << 20
		l, _ := open(t, d, cfg, 0)
		var written atomic.Int64
		d.Hook(func(c disktest.Call) error {
			if c.Op == disktest.Write {
				written.Add(int64(c.Len))
			}
			return nil
		})
		const total = 4 << 20
		for i := range total / c.size {
			add(t, l, 1, text(i, c.size))
		}
		if n := written.Load(); n > total/2*3 != c.ahead {
			t.Errorf("%d bytes were written for %d in entries of %d", n, total, c.size)
		}
		must(t, l.Close())
	}
}
