package logengine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk/disktest"
)

// TestBallast fills a disk up in which there is ballast: it is given up, what ends messages goes on,
// also after opening again, and once there is room the ballast is back and pushes are accepted, without
// anybody's doing.
func TestBallast(t *testing.T) {
	t.Parallel()
	d := disktest.New(&disktest.Config{Space: 4 << 20})
	p := place{d, "data", logengine.Config{Logger: quiet, MinFreeBytes: -1, BallastBytes: 512 << 10},
		logengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 256 << 10, MergeRuns: 4}}
	e := p.open(t)
	var kept []string
	var err error
	for n := 0; err == nil; n++ {
		if n == 100 {
			t.Fatal("the disk is never full")
		}
		var some []string
		some, err = fill(t, e, fmt.Sprint("q", n), 100, 0)
		kept = append(kept, some...)
	}
	if !errors.Is(err, engine.ErrNoSpace) {
		t.Fatal(err)
	}
	reads(t, e, "disk_full", "", positive)
	if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrNoSpace) {
		t.Errorf("ready: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	defer e.Close()
	left := 0
	for n := 0; ; n++ {
		queue := fmt.Sprint("q", n)
		info, err := e.Queue(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		if info.Ready == 0 {
			break
		}
		leases := lease(t, e, queue, 60)
		settle(t, e, leases[:40], engine.Ack)
		settle(t, e, leases[40:50], engine.Bury)
		settle(t, e, leases[50:], engine.Extend)
		left += int(info.Ready) - len(leases)
	}
	if left == 0 || left >= len(kept) {
		t.Errorf("%d of %d are left", left, len(kept))
	}
	if err := pushAll(t, e, message("q", "again", time.Hour)); err != nil && !errors.Is(err, engine.ErrNoSpace) {
		t.Errorf("push: %v", err)
	}
	for n := range 100 {
		if _, err := e.Purge(t.Context(), fmt.Sprint("q", n), engine.PurgeDead); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "pushes are accepted", func() bool {
		err := pushAll(t, e, message("q", fmt.Sprint(time.Now().UnixNano()), time.Hour))
		if err != nil && !errors.Is(err, engine.ErrNoSpace) {
			t.Fatal(err)
		}
		return err == nil
	})
	reads(t, e, "disk_full", "", none)
	if n := enginetest.FigureOf(t, e, "disk_stopped", ""); n != 0 {
		t.Error("the store has stopped")
	}
	if err := e.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
