package diskengine

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/tarryhq/tarry/engine"
)

// TestLeaseReadsNothingThatHasGone leases messages between which a great many lay that
// have been acked: those are not read again.
func TestLeaseReadsNothingThatHasGone(t *testing.T) {
	const many = 2000
	message := func(queue string, in time.Duration) engine.Message {
		return engine.Message{Queue: queue, Due: engine.When{In: in}, Content: engine.Content{Body: make([]byte, inlineBody)}}
	}
	s := newScene(t, func(d *coldDisk) {
		msgs := []engine.Message{message("r", time.Hour)}
		for range many {
			msgs = append(msgs, message("r", 0), message("s", 0))
		}
		pushAll(t, d.Engine, append(msgs, message("r", time.Hour), message("s", time.Hour)))
		if err := d.store.db.Flush(); err != nil {
			t.Fatal(err)
		}
		g, err := d.Lease(t.Context(), wantsOf([]string{"r", "s"}, many, true))
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Settle(t.Context(), acksOf(g))
		if err != nil || len(s) != 2*many {
			t.Fatal(err, len(s))
		}
	})
	for n, names := range map[int][]string{2: {"r"}, 3: {"r", "s"}} {
		t.Run(fmt.Sprintf("of %d queues", len(names)), func(t *testing.T) {
			d := scene{s.mem.CrashClone(vfs.CrashCloneCfg{}), s.at}.open(t)
			if _, err := d.Lease(t.Context(), wantsOf(names, 1, true)); err != nil { // what waits comes into memory
				t.Fatal(err)
			}
			d.clock.Advance(time.Hour)
			reads := 0
			count := func() { reads++ }
			d.onRead.Store(&count)
			g, err := d.Lease(t.Context(), wantsOf(names, 2, true))
			d.onRead.Store(nil)
			if leased := len(acksOf(g)); err != nil || leased != n {
				t.Fatal(err, leased)
			}
			if reads == 0 || reads > 20 {
				t.Errorf("%d reads for %d messages", reads, n)
			}
		})
	}
}
