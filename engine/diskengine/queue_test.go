package diskengine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestQueuesThatWentTakeNoMemory makes many queues and empties them: their memory is given back, but for
// some that are kept. Those that still hold something stay.
func TestQueuesThatWentTakeNoMemory(t *testing.T) {
	const queues, stay, each = 12_000, 100, 150 // bytes of names, settings and tables of a queue, at least
	clock := enginetest.NewClock()
	p := place{disk.OS{}, t.TempDir(), diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 4 << 20}}
	e := p.open(t)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for at := 0; at < queues; at += 500 {
		var msgs []engine.Message
		var refs []engine.Ref
		for i := at; i < at+500; i++ {
			queue := fmt.Sprintf("queue-%06d", i)
			msgs = append(msgs, message(queue, "k", time.Hour))
			if i >= stay {
				refs = append(refs, engine.Ref{Queue: queue, Key: "k"})
			}
		}
		if err := pushAll(t, e, msgs...); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Cancel(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
	}
	full := heap()
	clock.Advance(2 * time.Minute)
	if err := e.Tidy(); err != nil {
		t.Fatal(err)
	}
	after := heap()
	t.Logf("%d queues take %d KiB, %d after they went", queues, (full-before)>>10, (after-before)>>10)
	if full-before < queues*each {
		t.Errorf("%d queues take %d bytes: the test measures nothing", queues, full-before)
	}
	if after-before > (full-before)/4 {
		t.Errorf("%d queues took %d bytes, and %d are left", queues, full-before, after-before)
	}
	all, _, err := e.Queues(t.Context(), "", 1000)
	if err != nil || len(all) != stay {
		t.Errorf("%d queues are there, want %d: %v", len(all), stay, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
