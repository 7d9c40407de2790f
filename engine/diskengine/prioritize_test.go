package diskengine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs/disktest"
	"github.com/tarryhq/tarry/engine/enginetest"
)

// TestPriorityOfASettlementLasts gives messages another priority, wherever they are stored: they have it, and the
// place in the order that goes with it, after a loss of power too.
func TestPriorityOfASettlementLasts(t *testing.T) {
	stored := map[string]func(e *diskengine.Engine, ctx context.Context) error{
		"in the memtable":      func(*diskengine.Engine, context.Context) error { return nil },
		"in a sealed memtable": (*diskengine.Engine).Seal,
		"in an sstable":        (*diskengine.Engine).Flush,
	}
	const first, last = 1, 5000
	for name, move := range stored {
		for _, do := range []engine.Action{engine.Retry, engine.Snooze, engine.Release, engine.Bury} {
			for _, lapsed := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", do, " lapsed ", lapsed), func(t *testing.T) {
					d, clock := disktest.New(nil), enginetest.NewClock()
					p := place{d, "data", diskengine.Config{Now: clock.Now, Logger: quiet}, diskengine.Tune{SegmentBytes: 64 << 10, Still: true}}
					e := p.open(t)
					m := message("q", "late", 0)
					m.Body = noise(3000)
					must(t, pushAll(t, e, m))
					must(t, move(e, t.Context()))
					got := lease(t, e, "q", 1)
					if lapsed {
						clock.Advance(2 * time.Hour)
					}
					must(t, pushAll(t, e, message("q", "usual", -3*time.Hour)))
					reprioritize(t, e, got, do, last)
					lost := d.Crash(disktest.Nothing())
					must(t, e.Sound())
					must(t, e.Close())

					p.fs = lost
					e = p.open(t)
					info, err := e.Get(t.Context(), engine.Ref{Queue: "q", ID: got[0].ID})
					if err != nil || info.Priority != last || string(info.Body) != string(m.Body) || info.TTR != m.TTR || info.MaxAttempts != m.MaxAttempts {
						t.Errorf("%+v, %v", info, err)
					}
					if do == engine.Bury {
						_, err := e.Redrive(t.Context(), "q", nil, 0)
						must(t, err)
					}
					clock.Advance(time.Minute)
					both := lease(t, e, "q", 2)
					if len(both) != 2 || both[0].Key != "usual" || both[1].Key != "late" {
						t.Errorf("leased are %v", keysOf(both))
					}
					reprioritize(t, e, both[1:], engine.Release, first)
					reprioritize(t, e, both[:1], engine.Release, last)
					if both = lease(t, e, "q", 2); len(both) != 2 || both[0].Key != "late" || both[0].Priority != first {
						t.Errorf("leased then are %v", keysOf(both))
					}
					must(t, e.Sound())
					must(t, e.Close())
				})
			}
		}
	}
}

// reprioritize settles leases with a priority.
func reprioritize(t testing.TB, e engine.Engine, leases []engine.Lease, do engine.Action, priority uint32) {
	t.Helper()
	all := make([]engine.Settlement, len(leases))
	for i, l := range leases {
		all[i] = engine.Settlement{Token: l.Token, Do: do, When: &engine.When{In: time.Second}, Priority: &priority}
	}
	out, err := e.Settle(t.Context(), all)
	must(t, err)
	for _, s := range out {
		must(t, s.Err)
	}
}

func keysOf(leases []engine.Lease) (keys []string) {
	for _, l := range leases {
		keys = append(keys, l.Key)
	}
	return keys
}
