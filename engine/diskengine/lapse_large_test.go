package diskengine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestLargeOnesDieAmidAnAtomicPush: a push to several queues, in each of which a large message has died by
// its lapse, writes those down in entries of the log that are not too long for it.
func TestLargeOnesDieAmidAnAtomicPush(t *testing.T) {
	clock := enginetest.NewClock()
	p := place{disktest.New(nil), "data", diskengine.Config{Logger: quiet, RetryFor: -1, MinFreeBytes: -1, Now: clock.Now}, diskengine.Tune{SegmentBytes: 1 << 20, EntryBytes: 4 << 20, OnHeap: true}}
	e := p.open(t)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var small []engine.Message
	body := bytes.Repeat([]byte("x"), e.Capabilities().MaxBody)
	for i := range 6 {
		m := message(fmt.Sprint("q", i), "large", 0)
		m.Body, m.MaxAttempts, m.TTR = body, 1, time.Second
		if err := pushAll(t, e, m); err != nil {
			t.Fatal(err)
		}
		small = append(small, message(m.Queue, "small", 0))
	}
	for _, m := range small {
		if g, err := e.Lease(t.Context(), []engine.Want{{Queue: m.Queue, Max: 1, Remote: true}}); err != nil || len(g.Queues[0].Messages) != 1 {
			t.Fatal(g, err)
		}
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.Advance(2 * time.Second)
	if _, err := e.PushAtomic(t.Context(), small); err != nil {
		t.Error(err)
	}
}
