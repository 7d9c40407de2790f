package logengine_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/logengine"
	"github.com/tarryhq/tarry/engine/logengine/internal/disk/disktest"
)

// TestRedriveEnds brings all dead messages of a queue back, of whom one dies again while the second
// page of them is read: it stays dead, and the redrive ends.
func TestRedriveEnds(t *testing.T) {
	const n = 2*engine.MaxPage + 500
	d, clock := disktest.New(nil), enginetest.NewClock()
	e := place{d, "data", logengine.Config{Now: clock.Now, Logger: quiet}, logengine.Tune{SegmentBytes: 1 << 20}}.open(t)
	msgs := make([]engine.Message, n)
	for i := range msgs {
		msgs[i] = message("q", fmt.Sprint(i), 0)
	}
	if err := pushAll(t, e, msgs...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		settle(t, e, lease(t, e, "q", engine.MaxPage), engine.Bury)
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var again atomic.Bool
	d.Hook(func(c disktest.Call) error {
		if c.Op != disktest.Read || !strings.HasSuffix(c.Name, ".run") || again.Load() {
			return nil
		}
		if i, err := e.Queue(t.Context(), "q"); err == nil && i.Ready == engine.MaxPage && again.CompareAndSwap(false, true) {
			clock.Advance(time.Second)
			settle(t, e, lease(t, e, "q", 1), engine.Bury)
		}
		return nil
	})
	got, err := e.Redrive(t.Context(), "q", nil, 0)
	if err != nil || got.Redriven != n || !again.Load() {
		t.Errorf("of %d dead %+v: %v", n, got, err)
	}
	if i, err := e.Queue(t.Context(), "q"); err != nil || i.Dead != 1 || i.Ready != n-1 {
		t.Errorf("%+v, %v", i, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
