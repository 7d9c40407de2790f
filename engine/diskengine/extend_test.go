package diskengine_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestExtendedAfterItLapsed extends a lease that had lapsed while the log is told again of leases, of
// those that hold already and of those that lapsed not yet. Whoever opens the store after a kill finds it,
// and a purge leaves its message alone.
func TestExtendedAfterItLapsed(t *testing.T) {
	for _, purged := range []bool{false, true} {
		t.Run(fmt.Sprint("purged ", purged), func(t *testing.T) {
			clock, d := enginetest.NewClock(), disktest.New(nil)
			var meanwhile atomic.Pointer[func()]
			p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, OnHeap: true, Between: func(where string) {
				if fn := meanwhile.Load(); where == "rewrite leases" && fn != nil && meanwhile.CompareAndSwap(fn, nil) {
					(*fn)()
				}
			}}}
			e := p.open(t)
			defer func() { _ = e.Close() }()
			if err := pushAll(t, e, message("q", "a", 0), message("q", "b", time.Hour)); err != nil {
				t.Fatal(err)
			}
			held := lease(t, e, "q", 1)
			clock.Advance(2 * time.Hour)
			if i, err := e.Queue(t.Context(), "q"); err != nil || i.Leased != 0 {
				t.Fatal(err, i)
			}
			extend := func() { settle(t, e, held, engine.Extend) }
			meanwhile.Store(&extend)
			if err := e.Flush(t.Context()); err != nil || meanwhile.Load() != nil {
				t.Fatal(err, "extended: ", meanwhile.Load() == nil)
			}
			if purged {
				if n, err := e.Purge(t.Context(), "q", 0); err != nil || n != 1 {
					t.Fatal(n, err)
				}
			}
			p.fs = d.Kill()
			again := p.open(t)
			defer func() {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}()
			if i, err := again.Get(t.Context(), engine.Ref{Queue: "q", Key: "a"}); err != nil || i.State != engine.Leased || i.Attempt != 1 {
				t.Errorf("after a kill: %v, %v with attempt %d", err, i.State, i.Attempt)
			}
			settle(t, again, held, engine.Ack)
		})
	}
}
