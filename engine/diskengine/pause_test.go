package diskengine_test

import (
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestResumedWhenItWasOver has a pause end by itself, and be ended, before the clock is set back and the
// process killed.
func TestResumedWhenItWasOver(t *testing.T) {
	clock, d := enginetest.NewClock(), disktest.New(nil)
	p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true}}
	e := p.open(t)
	defer e.Close()
	if err := e.Pause(t.Context(), "q", time.Minute); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Paused {
		t.Fatal(err, i)
	}
	if err := e.Resume(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	clock.Advance(-time.Hour)
	p.fs = d.Kill()
	again := p.open(t)
	if i, err := again.Queue(t.Context(), "q"); err != nil || i.Paused {
		t.Errorf("%v, paused %v", err, i.Paused)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
