package diskengine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
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
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 3, Merged: most}}.open(t)
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
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 100, Merged: most, Still: true}}.open(t)
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

// TestMergesAreShort: no merge makes an sstable of more bytes than one may take, unless that is less than an eighth
// of all: so a store that is closed soon loses little of what it has merged. There are few sstables all the same.
func TestMergesAreShort(t *testing.T) {
	const most, flushes, each = 20 << 10, 100, 10
	e := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, MergeTables: 3, MergeBytes: most, Still: true}}.open(t)
	longest, bytes := int64(0), int64(0)
	for i := range flushes {
		for k := range each {
			m := message("q", fmt.Sprint(i, "-", k), 0)
			m.Body = noise(300)
			must(t, pushAll(t, e, m))
		}
		must(t, e.Flush(t.Context()))
		must(t, e.CatchUp())
		longest, bytes = 0, 0
		for _, r := range e.Tables() {
			n := r.Value().Bytes()
			longest, bytes = max(longest, n), bytes+n
		}
		if longest > max(most, bytes/8)*5/4 { // indexes that fill no page
			t.Fatalf("after %d flushes an sstable has %d bytes of %d", i+1, longest, bytes)
		}
	}
	if n := len(e.Tables()); longest < bytes/20 || n > 20 {
		t.Errorf("there are %d sstables, the largest has %d bytes of %d", n, longest, bytes)
	}
	if got := drain(t, e); len(got) != flushes*each {
		t.Errorf("%d are leased", len(got))
	}
	must(t, e.Close())
}

// TestMergesGiveWay merges while nothing else happens, which takes no time on a disk that takes none, and beside
// pushes: then it rests.
func TestMergesGiveWay(t *testing.T) {
	for busy, most := range map[bool]time.Duration{false: 0, true: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var e *diskengine.Engine
			merging, others := false, 0
			between := func(where string) {
				if merging && busy && where == "merge" {
					others++
					push(t, e, fmt.Sprint("other", others), time.Hour)
				}
			}
			e = place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 1 << 20, MergeTables: 8, Still: true, Between: between}}.open(t)
			for i := range 8 {
				for k := range 100 {
					m := message("q", fmt.Sprint(i, "-", k), time.Hour)
					m.Body = noise(2000)
					must(t, pushAll(t, e, m))
				}
				must(t, e.Flush(t.Context()))
			}
			merging = true
			began := time.Now()
			must(t, e.CatchUp())
			merging = false
			if n, took := len(e.Tables()), time.Since(began); n != 1 || took > most || busy && took < 50*time.Millisecond {
				t.Errorf("busy %v: a merge to %d sstables took %v", busy, n, took)
			}
			must(t, e.Close())
		})
	}
}
