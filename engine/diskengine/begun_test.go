package diskengine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/verify"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// loseSegments removes all files of the log of a store.
func loseSegments(t *testing.T, d *disktest.Disk, dir string) {
	t.Helper()
	names, err := d.List(filepath.Join(dir, "log"))
	must(t, err)
	for _, name := range names {
		must(t, d.Remove(filepath.Join(dir, "log", name)))
	}
}

// TestAllSegmentsLost: a store that never was flushed and has lost all files of its log is damaged, and not
// empty; so is one that a salvage made of it. The salvage says what is lost.
func TestAllSegmentsLost(t *testing.T) {
	m := (&machines{clock: enginetest.NewClock()}).machine()
	m.dir = "data"
	for _, made := range []string{"made", "again"} {
		e := m.open(t)
		for i := range 300 {
			must(t, pushAll(t, e, message("q", fmt.Sprint(i), 0)))
		}
		must(t, e.Close())
		m.disk.Hook(nil)
		loseSegments(t, m.disk, m.dir)
		refusedAsDamaged(t, m)
		m.disk.Hook(nil)
		out := salvaged(t, m.disk, m.dir, made)
		if out.Before.Sound() || len(out.Losses) != 1 || out.Losses[0].Messages != -1 || !strings.Contains(out.Losses[0].What, "all of the log is missing") {
			t.Fatalf("%+v", out)
		}
		m.dir = made
		e = m.open(t)
		must(t, pushAll(t, e, message("q", "a", 0)))
		if info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err != nil || info.ID < 300 {
			t.Errorf("%v, %v: an id is given twice", info.ID, err)
		}
		must(t, e.Close())
	}
}

// TestFirstOpeningCutOff lets the power go before each call that changes the disk while a store is made, and
// kills the process: it can be opened, the check finds nothing wrong, and what is answered then is kept.
func TestFirstOpeningCutOff(t *testing.T) {
	m := (&machines{clock: enginetest.NewClock()}).machine()
	var losses []*disktest.Disk
	place := func(d *disktest.Disk) place {
		return place{d, "data", diskengine.Config{Now: m.clock.Now, Logger: quiet, MinFreeBytes: -1}, diskengine.Tune{SegmentBytes: 64 << 10, Still: true}}
	}
	d := m.disk
	d.Hook(func(c disktest.Call) error {
		if c.Changes() {
			n := 0
			for chooser := range disktest.Every() {
				if losses = append(losses, d.Crash(chooser)); n == 16 {
					break
				}
				n++
			}
			losses = append(losses, d.Kill())
		}
		return nil
	})
	e := place(d).open(t)
	must(t, pushAll(t, e, message("q", "a", 0)))
	d.Hook(nil)
	must(t, e.Close())
	marked := 0
	for i, d := range losses {
		rep, err := verify.Check(d, "data", nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err == nil && !rep.Sound() && (len(rep.Findings) > 1 || !strings.Contains(rep.Findings[0].String(), "MANIFEST: it is missing")) {
			t.Fatalf("loss %d of %d: %v", i, len(losses), rep.Findings)
		}
		e := place(d).open(t)
		must(t, pushAll(t, e, message("q", "b", 0)))
		d = d.Crash(disktest.Nothing())
		must(t, e.Close())
		e = place(d).open(t)
		if _, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "b"}); err != nil {
			t.Fatalf("loss %d of %d: %v", i, len(losses), err)
		}
		must(t, e.Close())
		loseSegments(t, d, "data")
		if rep, err := verify.Check(d, "data", nil); err != nil || rep.Sound() {
			t.Fatalf("loss %d of %d: without segments it is %v, %v", i, len(losses), rep, err)
		}
		marked++
	}
	if marked < 100 {
		t.Errorf("%d losses", marked)
	}
}
