package diskengine_test

import (
	"fmt"
	"testing"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
)

// TestMergedIsWithinOneRun: no more is merged than one run may hold, and what cannot be merged any more keeps
// nothing else from being so.
func TestMergedIsWithinOneRun(t *testing.T) {
	const most, flushes, each = 40, 30, 10
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeRuns: 3, Merged: most}}.open(t)
	for i := range flushes {
		for k := range each {
			push(t, e, fmt.Sprint(i, "-", k), 0)
		}
		must(t, e.Flush(t.Context()))
		must(t, e.CatchUp())
	}
	runs := e.Runs()
	for _, r := range runs {
		if n := r.Value().Len(); n > most {
			t.Errorf("a run has %d entries", n)
		}
	}
	if n := len(runs); n < flushes*each/most || n > flushes/2 {
		t.Errorf("there are %d runs", n)
	}
	if got := drain(t, e); len(got) != flushes*each {
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}
