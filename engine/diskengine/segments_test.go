package diskengine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
)

// TestSegmentsAreUsedAgain fills as many segments of the log as it may hold, again and again: each
// time those are written that were there before, not new ones.
func TestSegmentsAreUsedAgain(t *testing.T) {
	const segments, segment = 8, 64 << 10
	d := disktest.New(nil)
	var made atomic.Int64
	d.Hook(func(c disktest.Call) error {
		if c.Op == disktest.Create && strings.HasSuffix(c.Name, ".log") {
			made.Add(1)
		}
		return nil
	})
	e := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: segment, SpanBytes: segments * segment}}.open(t)
	for range 6 {
		err := e.Still(func() error {
			_, err := fill(t, e, "q", segments*segment/1100, time.Hour)
			return errors.Join(err, e.FlushStill(t.Context()))
		})
		if err == nil {
			_, err = e.Purge(t.Context(), "q", 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := made.Load(); n < segments || n > segments+4 {
		t.Errorf("%d segments were made", n)
	}
}
