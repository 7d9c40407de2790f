package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/vfstest"
)

// tablesWithin looks whether all sstables have so many entries at most, and returns how many sstables there are.
func tablesWithin(t *testing.T, e *diskengine.Engine, most uint32) int {
	t.Helper()
	tables := e.Tables()
	for _, r := range tables {
		if n := r.Value().Len(); n > most {
			t.Errorf("an sstable has %d entries", n)
		}
	}
	return len(tables)
}

// TestMergedIsWithinOneRun: no more is merged than one sstable may hold, and what cannot be merged any more keeps
// nothing else from being so.
func TestMergedIsWithinOneRun(t *testing.T) {
	const most, flushes, each = 40, 30, 10
	e := place{vfstest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 3, Merged: most}}.open(t)
	for i := range flushes {
		for k := range each {
			push(t, e, fmt.Sprint(i, "-", k), 0)
		}
		must(t, e.Flush(t.Context()))
		must(t, e.CatchUp())
	}
	if n := tablesWithin(t, e, most); n < flushes*each/most || n > flushes/2 {
		t.Errorf("there are %d sstables", n)
	}
	if got := drain(t, e); len(got) != flushes*each {
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}

// TestThinRunsAreMergedWithinOne: nor are more of those from which many have gone.
func TestThinRunsAreMergedWithinOne(t *testing.T) {
	const most, runs, each = 40, 6, 30
	e := place{vfstest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 100, Merged: most, Still: true}}.open(t)
	var gone []engine.Ref
	for i := range runs {
		for k := range each {
			key := fmt.Sprint(i, "-", k)
			push(t, e, key, time.Hour)
			if k%2 == 0 {
				gone = append(gone, engine.Ref{Queue: "q", Key: key})
			}
		}
		must(t, e.Flush(t.Context()))
	}
	errs, err := e.Cancel(t.Context(), gone)
	must(t, errors.Join(append(errs, err)...))
	must(t, e.CatchUp())
	if n := tablesWithin(t, e, most); n != runs/2 {
		t.Errorf("there are %d sstables of %d", n, runs)
	}
	must(t, e.Close())
}
