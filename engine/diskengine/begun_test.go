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
	"github.com/tarryhq/tarry/engine/diskengine/internal/check"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// loseSegments removes all files of the log of a store.
func loseSegments(t *testing.T, d *disktest.Disk) {
	t.Helper()
	dirs, err := d.List("data")
	must(t, err)
	for _, dir := range dirs {
		if dir != "log" && !strings.HasPrefix(dir, "log-") {
			continue
		}
		names, err := d.List(filepath.Join("data", dir))
		must(t, err)
		for _, name := range names {
			must(t, d.Remove(filepath.Join("data", dir, name)))
		}
	}
}

// TestAllSegmentsLost: a store that never was flushed and has lost all files of its log is damaged, and not
// empty; so is one that a repair made of it. The repair says what is lost.
func TestAllSegmentsLost(t *testing.T) {
	m := (&machines{clock: enginetest.NewClock()}).machine()
	for range 2 {
		e := m.open(t)
		for i := range 300 {
			must(t, pushAll(t, e, message("q", fmt.Sprint(i), 0)))
		}
		must(t, e.Close())
		m.disk.Hook(nil)
		loseSegments(t, m.disk)
		refusedAsDamaged(t, m)
		m.disk.Hook(nil)
		if rep, err := check.Check(m.disk, "data", nil); err != nil || rep.Sound() {
			t.Fatalf("the check says %+v, %v", rep, err)
		}
		if _, after, err := check.Repair(m.disk, "data", nil); err != nil || after.Sound() {
			t.Fatalf("a repair without loss leaves %+v, %v", after, err)
		}
		out, err := check.Rescue(m.disk, "data", nil, func([]check.Loss) error { return nil })
		if err != nil || !out.After.Sound() || len(out.Losses) != 1 || out.Losses[0].Messages != -1 || !strings.Contains(out.Losses[0].What, "all of the log is missing") {
			t.Fatalf("%+v, %v", out, err)
		}
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
		rep, err := check.Check(d, "data", nil)
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
		loseSegments(t, d)
		if rep, err := check.Check(d, "data", nil); err != nil || rep.Sound() {
			t.Fatalf("loss %d of %d: without segments it is %v, %v", i, len(losses), rep, err)
		}
		marked++
	}
	if marked < 100 {
		t.Errorf("%d losses", marked)
	}
}
