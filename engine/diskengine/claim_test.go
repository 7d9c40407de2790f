package diskengine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestClaimOfAStateLasts claims messages that are scheduled or dead, wherever they are stored: they are ready after
// a loss of power that ends the lease, and the counters say so.
func TestClaimOfAStateLasts(t *testing.T) {
	for _, state := range []engine.State{engine.Scheduled, engine.Dead} {
		for _, flushed := range []bool{false, true} {
			t.Run(fmt.Sprint(state, " flushed ", flushed), func(t *testing.T) {
				d, clock := disktest.New(nil), enginetest.NewClock()
				p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10}}
				e := p.open(t)
				m := message("q", "a", time.Hour)
				m.ExpireAfter = 10 * time.Hour
				must(t, pushAll(t, e, m))
				attempt := uint32(1)
				if state == engine.Dead {
					attempt++
					clock.Advance(time.Hour)
					settle(t, e, lease(t, e, "q", 1), engine.Bury)
				}
				if flushed {
					must(t, e.Flush(t.Context()))
				}
				must(t, e.Pause(t.Context(), "q", 0))
				clock.Advance(time.Minute)
				l, err := e.Claim(t.Context(), engine.Ref{Queue: "q", ID: 1, IfState: state}, engine.Want{})
				if err != nil || l.Attempt != attempt || l.Due.After(clock.Now()) {
					t.Fatalf("%+v, %v", l, err)
				}
				must(t, e.Sound())
				lost := d.Crash(disktest.Nothing())
				must(t, e.Close())

				p.fs = lost
				e = p.open(t)
				info, err := e.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"})
				if err != nil || info.State != engine.Ready || info.Attempt != attempt || !info.Due.Equal(l.Due) || !info.Expires.Equal(l.Expires) {
					t.Errorf("%+v, %v; claimed was %+v", info, err, l.Info)
				}
				if n, err := e.Queue(t.Context(), "q"); err != nil || n.Ready != 1 || n.Scheduled+n.Leased+n.Dead != 0 {
					t.Errorf("%+v, %v", n, err)
				}
				if f, err := e.Forecast(t.Context(), "q", time.Minute, 2*time.Hour); err != nil || f.Overdue+f.Buckets[0].Count != 1 {
					t.Errorf("%+v, %v", f, err)
				}
				must(t, e.Sound())
				must(t, e.Close())
			})
		}
	}
}
