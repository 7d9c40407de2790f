package diskengine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestBallast fills a disk up in which there is ballast: it is given up, what ends messages goes on,
// also after opening again, and once there is room the ballast is back and pushes are accepted, without
// anybody's doing.
func TestBallast(t *testing.T) {
	t.Parallel()
	d := disktest.New(&disktest.Config{Space: 4 << 20})
	p := place{d, "data", diskengine.Config{Logger: quiet, MinFreeBytes: -1, BallastBytes: 1 << 20},
		diskengine.Tune{SegmentBytes: 64 << 10, SpanBytes: 256 << 10, MergeTables: 4}}
	e := p.open(t)
	var kept []string
	queues := 0
	await(t, "the ballast is given up, and that is told", func() bool { // until then there is room now and then
		some, err := fill(t, e, fmt.Sprint("q", queues), 100, 0)
		if err != nil && !errors.Is(err, engine.ErrNoSpace) {
			t.Fatal(err)
		}
		kept = append(kept, some...)
		queues++
		names, err := d.List("data")
		if err != nil {
			t.Fatal(err)
		}
		return !slices.Contains(names, "BALLAST") && enginetest.FigureOf(t, e, "disk_full", "") == 1 &&
			errors.Is(e.Ready(t.Context()), engine.ErrNoSpace)
	})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = p.open(t)
	defer e.Close()
	left := 0
	for n := range queues {
		queue := fmt.Sprint("q", n)
		info, err := e.Queue(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		leases := lease(t, e, queue, 60)
		for i, l := range leases {
			do := engine.Ack
			if i%6 > 3 {
				do = []engine.Action{engine.Bury, engine.Extend}[i%2]
			}
			settle(t, e, []engine.Lease{l}, do)
		}
		left += int(info.Ready) - len(leases)
	}
	if left == 0 || left >= len(kept) {
		t.Errorf("%d of %d are left", left, len(kept))
	}
	if err := pushAll(t, e, message("q", "again", time.Hour)); err != nil && !errors.Is(err, engine.ErrNoSpace) {
		t.Errorf("push: %v", err)
	}
	for n := range queues {
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
